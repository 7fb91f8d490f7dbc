// One message on the page, complete or growing.

import { button, copyButton, el, put } from "./dom.js";
import { render } from "./markdown.js";
import { MarkdownStream } from "./stream.js";

/** A message's element. `again` and `edit` are what the buttons of the last messages do; the style shows them on those alone. */
export function messageView(message, { again, edit }) {
  const isUser = message.role === "user";
  const text = el("div", { class: "text" });
  const tools = el("footer", {}, copyButton(() => message.content, "Copy", "Copy message"));
  if (isUser) {
    text.append(message.content);
    tools.append(button("Edit", edit, { class: "quiet edit" }));
  } else tools.append(button("Regenerate", again, { class: "quiet again" }));
  const view = el("article", { class: `message ${message.role}`, "aria-label": isUser ? "You" : "Answer" }, text, tools);
  if (!isUser) new Answer(message, view, text, tools).complete();
  return view;
}

/** The element of an answer that is being written, and what writes to it. */
export function growingView(message, actions, drawn) {
  const text = el("div", { class: "text" });
  const tools = el("footer", {}, copyButton(() => message.content, "Copy", "Copy message"), button("Regenerate", actions.again, { class: "quiet again" }));
  const view = el("article", { class: "message assistant growing", "aria-label": "Answer" }, text, tools);
  return new Answer(message, view, text, tools, drawn);
}

class Answer {
  constructor(message, view, text, tools, drawn) {
    Object.assign(this, { message, view, text, tools, drawn });
    this.calls = [];
    this.stream = null;
  }

  /** Draws all of a message that is complete. */
  complete() {
    const { message } = this;
    if (message.reasoning) this.reasoning(message.reasoning, true);
    put(this.text, render(message.content));
    this.showCalls();
    this.about();
  }

  /** Draws what there is of a message that still grows. */
  resume() {
    if (this.message.reasoning) this.reasoning(this.message.reasoning, this.message.content !== "");
    if (this.message.content) this.content(this.message.content);
    this.showCalls();
  }

  content(text) {
    if (!this.stream) {
      this.stream = new MarkdownStream(this.text, this.drawn);
      if (this.summary) this.summary.textContent = "Reasoning";
    }
    this.stream.push(text);
  }

  reasoning(text, done = false) {
    if (!this.thought) {
      this.thought = el("div", { class: "thought" });
      this.summary = el("summary", {}, done ? "Reasoning" : "Reasoning …");
      this.view.prepend(el("details", { class: "reasoning" }, this.summary, this.thought));
    }
    this.thought.append(text);
    this.drawn?.();
  }

  showCalls() {
    for (const [index, call] of (this.message.calls ?? []).entries()) {
      if (!call) continue;
      this.calls[index] ??= this.newCall();
      this.calls[index].name.textContent = call.name;
      this.calls[index].body.textContent = call.arguments;
    }
    this.drawn?.();
  }

  newCall() {
    const [name, body] = [el("code"), el("code")];
    this.tools.before(el("details", { class: "call", open: true }, el("summary", {}, "Calls ", name), el("pre", {}, body)));
    return { name, body };
  }

  /** Ends a growing message. */
  end() {
    this.stream?.end();
    if (this.summary) this.summary.textContent = "Reasoning";
    this.view.classList.remove("growing");
    this.about();
  }

  about() {
    const { note, tokens, seconds } = this.message;
    if (note) this.tools.before(el("p", { class: "note" }, note));
    if (tokens > 1 && seconds) this.tools.append(el("span", { class: "about" }, `${tokens} tokens · ${((tokens - 1) / seconds).toFixed(1)} tokens/s`));
  }
}
