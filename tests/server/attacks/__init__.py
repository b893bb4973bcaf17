# SPDX-License-Identifier: Apache-2.0
"""Attacks by what they use: holes of once, bodies, sockets, the service itself."""
