// Markdown within a line of text: code, emphasis, links. Gives nodes, and takes time in proportion to the text however it is made.

import { el } from "./dom.js";

const MOST_OPEN = 12;
const TAGS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };
// Not `(` and `[`: models write formulas as \(x\) and \[x\], and those should stay to be read.
const ESCAPED = "*_`~#|>!";
const SPECIAL = /[\\`*_~[\]!<\n]|https?:\/\//g;
const TARGET = /\(\s{0,8}<?([^\s()<>]{0,2000}(?:\([^\s()<>]{0,500}\)[^\s()<>]{0,500}){0,4})>?(?:\s{1,8}"[^"]{0,500}")?\s{0,8}\)/y;
const BARE = /https?:\/\/[^\s<>"`\\^{}|[\]]{1,2000}/y;

/** The address if it's one of the web, else null: other schemes could run code or open programs. */
export function webAddress(text) {
  if (!/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text).href;
  } catch {
    return null;
  }
}

const link = (href, inside) => el("a", { href, target: "_blank", rel: "noopener noreferrer" }, inside);
const isWord = (char) => char !== undefined && /[\p{L}\p{N}]/u.test(char);
const isSpace = (char) => char === undefined || /\s/.test(char);

/** The nodes of a text. */
export function inline(text) {
  return new Inline(text).nodes();
}

class Inline {
  constructor(text) {
    this.text = text;
    this.at = 0;
    // Nodes so far. What may turn out to open something is in here as the text that it is if it doesn't.
    this.out = [];
    // What is open, outermost first: { mark, place } with its place in `out`.
    this.open = [];
    this.links = 0;
    this.ticks = null;
  }

  nodes() {
    const { text } = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const next = SPECIAL.exec(text)?.index ?? text.length;
      this.say(text.slice(this.at, next));
      this.at = next;
      if (next < text.length) this.special(text[next]);
    }
    return this.out;
  }

  say(text) {
    if (text) this.out.push(text);
  }

  /** Takes `length` characters as they are. */
  take(length) {
    this.say(this.text.slice(this.at, this.at + length));
    this.at += length;
  }

  special(char) {
    const { text, at } = this;
    switch (char) {
      case "\\":
        if (text[at + 1] === "\n") return (this.at += 1);
        if (!ESCAPED.includes(text[at + 1] ?? " ")) return this.take(1);
        this.at += 1;
        return this.take(1);
      case "\n":
        this.out.push(el("br"));
        return (this.at += 1);
      case "`":
        return this.code();
      case "!":
        if (text[at + 1] !== "[") return this.take(1);
        return this.bracket("![");
      case "[":
        return this.bracket("[");
      case "]":
        return this.closeBracket();
      case "<":
        return this.angle();
      case "h":
        return this.bare();
      default:
        return this.emphasis(char);
    }
  }

  /** Length of the run of the character at `at`. */
  run(at) {
    let end = at;
    while (this.text[end] === this.text[at]) end += 1;
    return end - at;
  }

  code() {
    const length = this.run(this.at);
    const from = this.at + length;
    const end = this.closingTicks(length, from);
    if (end === undefined) return this.take(length);
    const inside = this.text.slice(from, end).replaceAll("\n", " ");
    const padded = inside.length > 2 && inside.startsWith(" ") && inside.endsWith(" ") && inside.trim();
    this.out.push(el("code", {}, padded ? inside.slice(1, -1) : inside));
    this.at = end + length;
  }

  // All runs of backticks are found once, else a text of many unclosed ones takes quadratic time.
  closingTicks(length, from) {
    if (!this.ticks) {
      this.ticks = new Map();
      for (const { 0: run, index } of this.text.matchAll(/`+/g)) {
        if (!this.ticks.has(run.length)) this.ticks.set(run.length, []);
        this.ticks.get(run.length).push(index);
      }
      for (const places of this.ticks.values()) places.reverse();
    }
    const places = this.ticks.get(length) ?? [];
    while (places.length && places.at(-1) < from) places.pop();
    return places.at(-1);
  }

  emphasis(char) {
    const { text, at } = this;
    let length = this.run(at);
    const [before, after] = [text[at - 1], text[at + length]];
    let [opens, closes] = [!isSpace(after), !isSpace(before)];
    // snake_case is a word.
    if (char === "_") [opens, closes] = [opens && !isWord(before), closes && !isWord(after)];
    if (length > 3 || (char === "~" && length !== 2)) return this.take(length);
    this.at += length;
    while (closes && length > 0) {
      const index = this.open.findLastIndex(({ mark }) => mark[0] === char && mark.length <= length);
      if (index < 0 || this.open[index].place === this.out.length - 1) break;
      const { mark, place } = this.open[index];
      this.wrap(index, place, (inside) => el(TAGS[mark], {}, inside));
      length -= mark.length;
    }
    while (length > 0) {
      const mark = char.repeat(Math.min(length, 2));
      if (opens) this.opened(mark);
      else this.say(mark);
      length -= mark.length;
    }
  }

  bracket(mark) {
    this.opened(mark);
    this.links += 1;
    this.at += mark.length;
  }

  /** Remembers a mark that may open something. */
  opened(mark) {
    this.out.push(mark);
    this.open.push({ mark, place: this.out.length - 1 });
    if (this.open.length > MOST_OPEN) this.forget(0, 1);
  }

  /** Puts what follows the mark into what `make` makes of it. What is open within stays text. */
  wrap(index, place, make) {
    const inside = this.out.splice(place).slice(1);
    this.out.push(make(inside));
    this.forget(index);
  }

  forget(index, count = Infinity) {
    for (const { mark } of this.open.splice(index, count)) this.links -= mark.endsWith("[") ? 1 : 0;
  }

  closeBracket() {
    const index = this.links > 0 ? this.open.findLastIndex(({ mark }) => mark.endsWith("[")) : -1;
    if (index < 0) return this.take(1);
    TARGET.lastIndex = this.at + 1;
    const target = TARGET.exec(this.text);
    const href = target && webAddress(target[1]);
    if (!href) {
      this.forget(index);
      return this.take(1);
    }
    // An image is a link to it: loading it would tell another machine that this is being read.
    this.wrap(index, this.open[index].place, (inside) => link(href, inside.length ? inside : target[1]));
    this.at = TARGET.lastIndex;
  }

  angle() {
    BARE.lastIndex = this.at + 1;
    const found = BARE.exec(this.text);
    const href = found && this.text[BARE.lastIndex] === ">" && webAddress(found[0]);
    if (!href) return this.take(1);
    this.out.push(link(href, found[0]));
    this.at = BARE.lastIndex + 1;
  }

  bare() {
    BARE.lastIndex = this.at;
    let address = (this.links === 0 && BARE.exec(this.text)?.[0]) || "h";
    // The end of a sentence is not part of an address, nor is the bracket around it.
    while (/[.,;:!?'*_~\])]$/.test(address) && !(address.endsWith(")") && address.includes("("))) address = address.slice(0, -1);
    const href = webAddress(address);
    if (!href) return this.take(address.length);
    this.out.push(link(href, address));
    this.at += address.length;
  }
}
