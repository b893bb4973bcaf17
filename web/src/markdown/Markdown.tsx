// SPDX-License-Identifier: Apache-2.0
// Tokens as nodes. There is no way from a text to markup here: every case names its element, HTML in a
// text is shown as text, images are named and not loaded, links lead to the web and mail alone.
import type {Token, Tokens} from 'marked';
import {Component, type ComponentChildren, type VNode} from 'preact';
import {useRef} from 'preact/hooks';
import {Code} from './Code';
import {Formula} from './Formula';
import {decoded, GrowingText, lex, type MathToken, safeAddress} from './parse';

export {Code};  // they are loaded together

const MAX_DEPTH = 24;

function link(href: string, children: ComponentChildren): ComponentChildren {
  const address = safeAddress(href);
  if (!address) return <span class="no-link" title="This link is not shown: only web and mail addresses are">{children}</span>;
  return <a href={address} target="_blank" rel="noopener noreferrer nofollow" title={address}>{children}</a>;
}

function inline(tokens: Token[] | undefined, depth: number): ComponentChildren {
  return (tokens ?? []).map((token) => one(token, depth + 1));
}

function one(token: Token | MathToken, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case 'math':
      return <Formula text={(token as MathToken).text} isDisplay={(token as MathToken).isDisplay} />;
    case 'strong':
      return <strong>{inline((token as Tokens.Strong).tokens, depth)}</strong>;
    case 'em':
      return <em>{inline((token as Tokens.Em).tokens, depth)}</em>;
    case 'del':
      return <del>{inline((token as Tokens.Del).tokens, depth)}</del>;
    case 'codespan':
      return <code dir="ltr">{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'link':
      return link((token as Tokens.Link).href, inline((token as Tokens.Link).tokens, depth));
    case 'image':
      return <span class="image" title={decoded((token as Tokens.Image).href)}>
        image: {link((token as Tokens.Image).href, decoded((token as Tokens.Image).text) || 'without a name')}
      </span>;
    case 'html':
      return /^<br\s*\/?>$/i.test(token.raw) ? <br /> : token.raw;
    case 'checkbox':
      return null;  // the item draws it
    case 'text':
      return (token as Tokens.Text).tokens
        ? inline((token as Tokens.Text).tokens, depth)
        : decoded((token as Tokens.Text).text);
    case 'escape':
      return (token as Tokens.Escape).text;
    default:
      return block(token as Token, depth);
  }
}

// Of a list that grows, only the last item is looked at again.
class Item extends Component<{entry: Tokens.ListItem; depth: number}> {
  shouldComponentUpdate({entry, depth}: {entry: Tokens.ListItem; depth: number}) {
    const old = this.props;
    return entry.raw !== old.entry.raw || entry.loose !== old.entry.loose || depth !== old.depth;
  }
  render() {
    const {entry, depth} = this.props;
    return (
      <li dir="auto" class={entry.task ? 'task' : undefined}>
        {entry.task && <input type="checkbox" checked={entry.checked ?? false} disabled aria-label={entry.checked ? 'done' : 'open'} />}
        {entry.tokens.map((token) => (token.type === 'text' || !BLOCKS.has(token.type) ? one(token, depth + 1) : block(token, depth + 1)))}
      </li>
    );
  }
}

function table(token: Tokens.Table, depth: number): VNode {
  const align = (at: number) => token.align[at] ?? undefined;
  return (
    <div class="table" tabIndex={0}>
      <table>
        <thead><tr>{token.header.map((cell, at) => <th scope="col" dir="auto" class={align(at)}>{inline(cell.tokens, depth)}</th>)}</tr></thead>
        <tbody>
          {token.rows.map((row) => <tr>{row.map((cell, at) => <td dir="auto" class={align(at)}>{inline(cell.tokens, depth)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}

const BLOCKS = new Set(['code', 'heading', 'table', 'hr', 'blockquote', 'list', 'html', 'def', 'paragraph', 'space', 'plain', 'math']);
// The page has the first two levels itself.
const HEADINGS = ['h3', 'h4', 'h5', 'h6', 'h6', 'h6'] as const;

function block(token: Token, depth: number, isGrowing = false): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'hr':
      return <hr />;
    case 'heading': {
      const Heading = HEADINGS[(token as Tokens.Heading).depth - 1] ?? 'h6';
      return <Heading dir="auto">{inline((token as Tokens.Heading).tokens, depth)}</Heading>;
    }
    case 'code':
      return <Code text={(token as Tokens.Code).text} isGrowing={isGrowing}
                   language={((token as Tokens.Code).lang ?? '').split(/[\s{:,]/)[0]!.toLowerCase().slice(0, 30)} />;
    case 'blockquote':
      return <blockquote dir="auto">{((token as Tokens.Blockquote).tokens).map((each) => block(each, depth + 1))}</blockquote>;
    case 'list': {
      const list = token as Tokens.List;
      const items = list.items.map((entry, at) => <Item key={at} entry={entry} depth={depth} />);
      return list.ordered ? <ol dir="auto" start={Number(list.start) || 1}>{items}</ol> : <ul dir="auto">{items}</ul>;
    }
    case 'table':
      return table(token as Tokens.Table, depth);
    case 'paragraph':
      return <p dir="auto">{inline((token as Tokens.Paragraph).tokens, depth)}</p>;
    case 'math':
      return <Formula text={(token as unknown as MathToken).text} isDisplay />;
    case 'html':
      return <p dir="auto" class="raw">{token.raw.trimEnd()}</p>;
    case 'plain':
      return <p dir="auto" class="raw">{token.raw}</p>;
    case 'text':
      return <p dir="auto">{one(token, depth + 1)}</p>;
    default:
      return token.raw;
  }
}

// Blocks that did not change are not looked at again.
class Block extends Component<{token: Token; raw: string; isGrowing: boolean}> {
  shouldComponentUpdate(next: {raw: string; isGrowing: boolean}) {
    return next.raw !== this.props.raw || next.isGrowing !== this.props.isGrowing;
  }
  render() {
    return <>{block(this.props.token, 0, this.props.isGrowing)}</>;
  }
}

// Blocks by the dozen, so that a long reply costs its last blocks a frame: a part that did not change
// is one comparison here, and where it is out of sight neither laid out nor painted (chat.css).
const PART = 12;

interface PartProps {
  tokens: Token[];
  growing: number;  // which of them grows, or -1
}

class Part extends Component<PartProps> {
  shouldComponentUpdate({tokens, growing}: PartProps) {
    const old = this.props;
    return growing !== old.growing || tokens.length !== old.tokens.length ||
      tokens.some((token, at) => token !== old.tokens[at] && token.raw !== old.tokens[at]!.raw);
  }
  render() {
    const {tokens, growing} = this.props;
    return <div class="part">{tokens.map((token, at) => <Block key={at} token={token} raw={token.raw} isGrowing={at === growing} />)}</div>;
  }
}

export function Markdown({text, isGrowing = false}: {text: string; isGrowing?: boolean}) {
  const growing = useRef<GrowingText | null>(null);
  if (isGrowing) growing.current ??= new GrowingText();
  const tokens = isGrowing ? growing.current!.tokens(text) : lex(text);
  const parts = [];
  for (let from = 0; from < tokens.length; from += PART) {
    const last = tokens.length - 1 - from;
    parts.push(<Part key={from} tokens={tokens.slice(from, from + PART)} growing={isGrowing && last < PART ? last : -1} />);
  }
  return <div class="markdown">{parts}</div>;
}
