// The chat: which conversation is shown, what is asked, and what is being answered. Answers belong to their conversation and go on when
// another one is shown.

import { ApiError, chat, models } from "./api.js";
import { announce, button, byId, el } from "./dom.js";
import { growingView, messageView } from "./message.js";
import * as meters from "./meters.js";
import { follow, setUp as setUpScrolling } from "./scroll.js";
import * as settingsDialog from "./settings.js";
import * as sidebar from "./sidebar.js";
import { load, newId, remove, save, set, settings } from "./store.js";

// While an answer is written it's kept this often, so that a closed page loses little.
const SAVE_EVERY = 2000;

const [log, notice, prompt] = [byId("log"), byId("notice"), byId("prompt")];
let conversations = [];
let current = null;
let editing = false;
// Of a conversation: the answer being written, and why the last one failed.
const running = new Map();
const failures = new Map();

const fresh = () => ({ id: newId(), title: "New conversation", updated: Date.now(), messages: [] });
const actions = { again: regenerate, edit: editLast };

// Keeping can fail (a full disk, a private window); talking goes on, and the reader should know.
function keep(conversation) {
  save(conversation).catch(() => announce("This browser doesn’t keep conversations: export what you need."));
}

function show(conversation, focus = true) {
  current = conversation;
  set("last", conversation.id);
  cancelEdit();
  const run = running.get(conversation);
  const complete = conversation.messages.filter((message) => message !== run?.message);
  log.replaceChildren(...complete.map((message) => messageView(message, actions)));
  if (run) grow(run);
  showState();
  follow(true);
  if (focus) prompt.focus();
}

function showState() {
  const isRunning = running.has(current);
  byId("title").textContent = current.title;
  document.title = current.messages.length ? `${current.title} – TurboSpark` : "TurboSpark";
  log.setAttribute("aria-busy", String(isRunning));
  byId("send").hidden = isRunning;
  byId("stop").hidden = !isRunning;
  document.body.classList.toggle("empty", current.messages.length === 0);
  drawNotice(isRunning);
  sidebar.draw(conversations, current, { open, rename, remove: discard });
}

function drawNotice(isRunning) {
  const failure = failures.get(current);
  const unanswered = current.messages.at(-1)?.role === "user";
  if (isRunning || (!failure && !unanswered)) return notice.replaceChildren();
  const again = unanswered && button(failure ? "Try again" : "Answer", () => answer(current));
  const key = failure?.kind === "key" && button("Enter the key", () => settingsDialog.open("key"), { class: "main" });
  const row = el("div", { class: "row" }, key, again);
  notice.replaceChildren(el("div", { class: failure ? "failure" : "" }, el("p", {}, failure?.message ?? "Not answered."), row));
}

function open(conversation) {
  show(conversation);
  sidebar.close();
  prompt.focus();
}

function rename(conversation, title) {
  conversation.title = title;
  if (conversation.messages.length) keep(conversation);
  showState();
  document.querySelector('#conversations [aria-current="true"]')?.focus();
}

function discard(conversation) {
  running.get(conversation)?.abort.abort();
  conversations = conversations.filter((each) => each !== conversation);
  conversation.discarded = true;
  remove(conversation.id).catch(() => {});
  if (!conversations.length) conversations = [fresh()];
  if (conversation === current) show(conversations[0]);
  else showState();
}

function create() {
  if (!conversations[0].messages.length) return open(conversations[0]);
  conversations.unshift(fresh());
  open(conversations[0]);
}

function send() {
  const text = prompt.value.trim();
  if (!text || running.has(current)) return;
  const { messages } = current;
  if (editing) {
    messages.splice(messages.findLastIndex(({ role }) => role === "user"));
    log.replaceChildren(...[...log.children].slice(0, messages.length));
  }
  if (!messages.length) current.title = text.split("\n", 1)[0].slice(0, 60);
  messages.push({ role: "user", content: text });
  log.append(messageView(messages.at(-1), actions));
  cancelEdit();
  prompt.value = "";
  fitPrompt();
  follow(true);
  answer(current);
}

function regenerate() {
  if (running.has(current)) return;
  if (current.messages.at(-1)?.role === "assistant") {
    current.messages.pop();
    log.lastElementChild.remove();
  }
  answer(current);
  prompt.focus();
}

function editLast() {
  const last = current.messages.findLast(({ role }) => role === "user");
  if (!last || running.has(current)) return;
  editing = true;
  byId("editing").hidden = false;
  prompt.value = last.content;
  fitPrompt();
  prompt.focus();
}

function cancelEdit() {
  if (!editing) return;
  editing = false;
  byId("editing").hidden = true;
  prompt.value = "";
  fitPrompt();
}

function body(conversation) {
  const messages = conversation.messages.map(({ role, content }) => ({ role, content }));
  if (settings.system.trim()) messages.unshift({ role: "system", content: settings.system });
  return { model: settings.model, messages, stream: true, stream_options: { include_usage: true }, ...settingsDialog.sampling() };
}

function grow(run) {
  run.view = growingView(run.message, actions, () => run.conversation === current && follow());
  run.view.resume();
  log.append(run.view.view);
}

/** Asks for an answer to a conversation, whose last message is the user's. */
async function answer(conversation) {
  failures.delete(conversation);
  if (!settings.model) await loadModels();
  if (!settings.model) return;
  if (running.has(conversation)) return;
  const request = body(conversation);
  const run = { conversation, abort: new AbortController(), message: { role: "assistant", content: "" } };
  conversation.messages.push(run.message);
  conversation.updated = Date.now();
  conversations.sort((a, b) => b.updated - a.updated);
  running.set(conversation, run);
  if (conversation === current) grow(run);
  showState();
  announce("Writing …");
  meters.start();
  keep(conversation);
  try {
    await write(run, chat(request, settings.key, run.abort.signal));
  } catch (error) {
    if (error.name === "AbortError") run.message.note = "Stopped.";
    else {
      const failure = error instanceof ApiError ? error : new ApiError("server", `The page can’t show this answer: ${error.message}`);
      run.message.note = failure.message;
      failures.set(conversation, failure);
    }
  }
  finish(run);
}

/** Writes what comes to the message and the page. */
async function write(run, chunks) {
  const { message } = run;
  let [began, saved] = [0, Date.now()];
  for await (const { choices, usage } of chunks) {
    const { delta = {}, finish_reason: finish } = choices?.[0] ?? {};
    const reasoning = delta.reasoning_content;
    if (reasoning || delta.content || delta.tool_calls) began ||= performance.now();
    if (reasoning) {
      message.reasoning = (message.reasoning ?? "") + reasoning;
      run.view?.reasoning(reasoning);
    }
    if (delta.content) {
      message.content += delta.content;
      run.view?.content(delta.content);
    }
    if (delta.tool_calls) {
      for (const call of delta.tool_calls) take(message, call);
      run.view?.showCalls();
    }
    if (finish === "length") message.note = "The answer reached its greatest length.";
    if (usage && began) {
      // From the first token on.
      message.tokens = usage.completion_tokens;
      message.seconds = (performance.now() - began) / 1000;
    }
    if (Date.now() - saved > SAVE_EVERY) {
      saved = Date.now();
      keep(run.conversation);
    }
  }
}

function take(message, { index, function: part = {} }) {
  message.calls ??= [];
  const call = (message.calls[index ?? 0] ??= { name: "", arguments: "" });
  call.name += part.name ?? "";
  call.arguments += part.arguments ?? "";
}

function finish(run) {
  const { conversation, message, view } = run;
  running.delete(conversation);
  if (!running.size) meters.stop();
  // An answer of nothing is none, unless the model meant it.
  const nothing = !message.content && !message.reasoning && !message.calls;
  if (nothing && message.note) {
    conversation.messages.pop();
    view?.view.remove();
  } else if (nothing) message.note = "The model answered nothing.";
  view?.end();
  if (!conversation.discarded) keep(conversation);
  if (!failures.has(conversation)) announce(message.note ?? "The answer is complete.");
  showState();
  if (conversation === current) follow();
}

async function loadModels() {
  const select = byId("model");
  try {
    const names = await models(settings.key);
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    select.disabled = !names.length;
    if (!names.includes(settings.model)) set("model", names[0] ?? "");
    select.value = settings.model;
    if (failures.get(current)?.kind === "key") failures.delete(current);
    if (!names.length) failures.set(current, new ApiError("server", "The server has no model."));
  } catch (error) {
    failures.set(current, error instanceof ApiError ? error : new ApiError("server", "The server’s list of models can’t be read."));
  }
  showState();
}

function fitPrompt() {
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight + 2}px`;
}

function stop() {
  const run = running.get(current);
  run?.abort.abort();
  prompt.focus();
  return Boolean(run);
}

function keys(event) {
  if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open]")) return;
  if (sidebar.close() || stop()) return;
  cancelEdit();
}

function setUp() {
  setUpScrolling();
  settingsDialog.setUp(loadModels);
  sidebar.setUp({
    create,
    all: () => conversations.filter(({ messages }) => messages.length),
    add(added) {
      added.forEach(keep);
      conversations = [...added, ...conversations].sort((a, b) => b.updated - a.updated);
      if (added.length) show(added[0]);
    },
    failed(message) {
      failures.set(current, new ApiError("server", message));
      showState();
    },
  });
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  prompt.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !prompt.value) {
      event.preventDefault();
      editLast();
    }
  });
  prompt.addEventListener("input", fitPrompt);
  byId("stop").addEventListener("click", stop);
  byId("cancel-edit").addEventListener("click", () => {
    cancelEdit();
    prompt.focus();
  });
  byId("model").addEventListener("change", ({ target }) => set("model", target.value));
  document.addEventListener("keydown", keys);
}

setUp();
conversations = await load().catch(() => []);
if (!conversations.length) conversations = [fresh()];
show(conversations.find(({ id }) => id === settings.last) ?? conversations[0]);
await loadModels();
meters.measure();
