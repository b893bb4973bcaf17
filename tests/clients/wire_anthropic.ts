// SPDX-License-Identifier: Apache-2.0
// What hearth serve may send under Anthropic's paths, in the words of the @anthropic-ai/sdk package.
import type {
  Message,
  MessageTokensCount,
  RawMessageStreamEvent,
} from '@anthropic-ai/sdk/resources/messages';
import type { ErrorResponse, NotFoundError } from '@anthropic-ai/sdk/resources/shared';

export interface Wire {
  Message: Message;
  MessageTokensCount: MessageTokensCount;
  RawMessageStreamEvent: RawMessageStreamEvent | { type: 'ping' };
  // The package looks for the details of a lost thread without having a type for them.
  Failure:
    | ErrorResponse
    | (Omit<ErrorResponse, 'error'> & {
        error: NotFoundError & { details: { error_code: 'thread_not_found' } };
      });
}
