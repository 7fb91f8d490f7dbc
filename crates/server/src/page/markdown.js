// Markdown's blocks: lines to a tree, a tree to elements. Nothing in a model's text becomes markup, an address other than the web's,
// or a request; nesting is bounded.

import { copyButton, el } from "./dom.js";
import { inline } from "./inline.js";

const DEEPEST = 10;
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^ {0,3}([-*+]|\d{1,9}[.)])(?: {1,4}(?=\S)|[ \t]*$|[ \t])/;

const isBlank = (line) => line.trim() === "";

/** Columns before the text; a tab counts four. */
function indent(line) {
  let columns = 0;
  for (const char of line) {
    if (char === " ") columns += 1;
    else if (char === "\t") columns += 4;
    else break;
  }
  return columns;
}

/** The line without up to `columns` of its indentation. */
function dedent(line, columns) {
  let cut = 0;
  while (columns > 0 && (line[cut] === " " || line[cut] === "\t")) {
    columns -= line[cut] === " " ? 1 : 4;
    cut += 1;
  }
  return line.slice(cut);
}

/** Whether a line ends the paragraph before it. */
function interrupts(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  // A year at the start of a line is no list.
  const starts = item && item[0].length < line.length && (!/\d/.test(item[1]) || parseInt(item[1], 10) === 1);
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || starts || isTable(lines, at);
}

function fence(lines, at) {
  const [, mark, info] = FENCE.exec(lines[at]) ?? [];
  if (!mark || (mark[0] === "`" && info.includes("`"))) return null;
  const closes = (line) => {
    const text = line.trim();
    return text.length >= mark.length && indent(line) < 4 && text === mark[0].repeat(text.length);
  };
  let to = at + 1;
  while (to < lines.length && !closes(lines[to])) to += 1;
  const columns = indent(lines[at]);
  const text = lines.slice(at + 1, to).map((line) => dedent(line, columns)).join("\n");
  const open = to >= lines.length;
  return { kind: "fence", language: info.trim().split(/\s/, 1)[0], text, open, to: open ? to : to + 1 };
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  if (!found) return null;
  let text = found[2].trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  if (end === 0 || text[end - 1] === " ") text = text.slice(0, end).trimEnd();
  return { kind: "heading", level: found[1].length, text, to: at + 1 };
}

const rule = (lines, at) => (RULE.test(lines[at]) ? { kind: "rule", to: at + 1 } : null);

function quote(lines, at, depth) {
  if (!QUOTE.test(lines[at]) || depth >= DEEPEST) return null;
  const inside = [];
  let to = at;
  for (; to < lines.length && !isBlank(lines[to]); to += 1) {
    if (QUOTE.test(lines[to])) inside.push(lines[to].replace(QUOTE, ""));
    else if (interrupts(lines, to)) break;
    else inside.push(lines[to]);
  }
  return { kind: "quote", blocks: parse(inside, depth + 1), to };
}

function list(lines, at, depth) {
  const kind = (found) => found?.[1].at(-1);
  const first = ITEM.exec(lines[at]);
  if (!first || depth >= DEEPEST) return null;
  const items = [];
  let [to, loose] = [at, false];
  while (to < lines.length) {
    const found = ITEM.exec(lines[to]);
    if (kind(found) !== kind(first) || RULE.test(lines[to])) break;
    const item = itemLines(lines, to, found[0].length);
    to = item.to;
    loose ||= item.loose || (item.ended && kind(ITEM.exec(lines[to] ?? "")) === kind(first));
    items.push(parse(item.lines, depth + 1));
  }
  const start = /\d/.test(first[1]) ? parseInt(first[1], 10) : null;
  return { kind: "list", start, items, loose, to };
}

/** An item's lines without the indentation; `loose` if a blank line is among them, `ended` if one follows. */
function itemLines(lines, at, width) {
  const least = indent(lines[at]) + 2;
  const inside = [lines[at].slice(width)];
  let [to, blank, loose] = [at + 1, false, false];
  for (; to < lines.length; to += 1) {
    const line = lines[to];
    if (isBlank(line)) {
      blank = true;
      inside.push("");
      continue;
    }
    // Models indent by two where the marker is three wide: two is enough.
    if (indent(line) < least && (blank || ITEM.test(line) || interrupts(lines, to))) break;
    loose ||= blank;
    blank = false;
    inside.push(dedent(line, width));
  }
  return { lines: inside, to, loose, ended: blank };
}

function cells(line) {
  let text = line.trim();
  if (text.startsWith("|")) text = text.slice(1);
  if (text.endsWith("|") && !text.endsWith("\\|")) text = text.slice(0, -1);
  return text.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function isTable(lines, at) {
  const marks = lines[at + 1];
  if (!lines[at].includes("|") || !marks?.includes("-") || !/^[\s|:-]+$/.test(marks)) return false;
  const columns = cells(marks);
  return columns.every((mark) => /^:?-+:?$/.test(mark)) && columns.length === cells(lines[at]).length;
}

function table(lines, at) {
  if (!isTable(lines, at)) return null;
  const sides = cells(lines[at + 1]).map((mark) => (mark.endsWith(":") ? (mark.startsWith(":") ? "middle" : "right") : null));
  const rows = [];
  let to = at + 2;
  for (; to < lines.length && !isBlank(lines[to]) && lines[to].includes("|"); to += 1) rows.push(cells(lines[to]));
  return { kind: "table", sides, head: cells(lines[at]), rows, to };
}

function paragraph(lines, at) {
  let to = at + 1;
  while (to < lines.length && !isBlank(lines[to]) && !interrupts(lines, to)) to += 1;
  return { kind: "paragraph", text: lines.slice(at, to).map((line) => line.trim()).join("\n"), to };
}

/** The blocks of some lines, each with the lines `from` and `to` that it takes. */
export function parse(lines, depth = 0) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const block = fence(lines, at) ?? heading(lines, at) ?? rule(lines, at) ?? quote(lines, at, depth)
      ?? list(lines, at, depth) ?? table(lines, at) ?? paragraph(lines, at);
    block.from = at;
    at = block.to;
    blocks.push(block);
  }
  return blocks;
}

/** The elements of a text. */
export const render = (text) => parse(text.split(/\r?\n/)).map(draw);

/** A block's element. */
export function draw(block) {
  switch (block.kind) {
    case "fence":
      return code(block);
    case "heading":
      // The page's own headings are the first two levels.
      return el(`h${Math.min(block.level + 2, 6)}`, { class: `h${block.level}` }, inline(block.text));
    case "rule":
      return el("hr");
    case "quote":
      return el("blockquote", {}, block.blocks.map(draw));
    case "list":
      return drawList(block);
    case "table":
      return drawTable(block);
    default:
      return el("p", {}, inline(block.text));
  }
}

function code({ language, text }) {
  const inside = el("code", {}, text);
  const bar = el("div", { class: "bar" }, el("span", {}, language), copyButton(() => inside.textContent, "Copy", "Copy code"));
  return el("div", { class: "code" }, bar, el("pre", {}, inside));
}

function drawList({ start, items, loose }) {
  const attributes = { start: start > 1 ? start : null, class: loose ? "loose" : null };
  return el(start === null ? "ul" : "ol", attributes, items.map((blocks) => el("li", {}, drawItem(blocks, loose))));
}

function drawItem(blocks, loose) {
  const [first, ...rest] = blocks;
  if (first?.kind !== "paragraph") return blocks.map(draw);
  const text = first.text.replace(/^\[([ xX])\] /, (_, mark) => (mark === " " ? "☐ " : "☑ "));
  const nodes = inline(text);
  return (loose ? [el("p", {}, nodes)] : nodes).concat(rest.map(draw));
}

function drawTable({ sides, head, rows }) {
  const row = (tag, texts) => el("tr", {}, sides.map((side, i) => el(tag, { class: side }, inline(texts[i] ?? ""))));
  const body = rows.map((texts) => row("td", texts));
  return el("div", { class: "wide" }, el("table", {}, el("thead", {}, row("th", head)), el("tbody", {}, body)));
}
