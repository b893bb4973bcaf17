// SPDX-License-Identifier: Apache-2.0
// Server-sent events from the pieces of a body, as the HTML standard reads them; and comments, in which
// the server says what its headers say of whole answers.

export interface ServerEvent {
  data?: string;
  comment?: string;
  id?: string;
}

export class EventReader {
  private rest = '';
  private data: string[] = [];
  private id: string | undefined;

  // The events that this piece completes.
  push(piece: string): ServerEvent[] {
    this.rest += piece;
    const events: ServerEvent[] = [];
    for (;;) {
      const end = this.rest.search(/\r\n|\n|\r(?!$)/);
      if (end < 0) return events;
      const line = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + (this.rest.startsWith('\r\n', end) ? 2 : 1));
      this.line(line, events);
    }
  }

  private line(line: string, events: ServerEvent[]) {
    if (line === '') {
      if (this.data.length > 0) events.push({data: this.data.join('\n'), id: this.id});
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) {
      events.push({comment: line.slice(1).trim()});
      return;
    }
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.data.push(value);
    if (name === 'id') this.id = value;
  }
}
