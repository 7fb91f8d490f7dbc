// What the browser keeps: conversations in IndexedDB, settings in localStorage. Nothing of it is sent anywhere but to the server that
// the page came from, and the API key is in no export.

const SETTINGS = "turbospark";
const FORMAT = "turbospark-conversations";

export const settings = {
  model: "", system: "", temperature: "", top_p: "", max_tokens: "", seed: "", key: "", theme: "", last: "",
  ...read(),
};

function read() {
  try {
    return JSON.parse(localStorage.getItem(SETTINGS)) ?? {};
  } catch {
    return {};
  }
}

export function set(name, value) {
  settings[name] = value;
  try {
    localStorage.setItem(SETTINGS, JSON.stringify(settings));
  } catch {
    // A browser that keeps nothing: it's good for as long as the page is open.
  }
}

/** A new conversation's name for the machine. `randomUUID` exists for secure origins alone. */
export const newId = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (word) => word.toString(36)).join("");

const promised = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

let database;

function objects(mode) {
  database ??= (() => {
    const opening = indexedDB.open("turbospark", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("conversations", { keyPath: "id" });
    return promised(opening);
  })();
  return database.then((open) => open.transaction("conversations", mode).objectStore("conversations"));
}

/** All conversations, the last used first. */
export async function load() {
  const all = await promised((await objects("readonly")).getAll());
  return all.sort((a, b) => b.updated - a.updated);
}

export const save = async (conversation) => promised((await objects("readwrite")).put(conversation));
export const remove = async (id) => promised((await objects("readwrite")).delete(id));

/** The conversations as a file's text. */
export const exported = (conversations) => JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 1);

/** The conversations of a file's text, as new ones; throws an error that says what is wrong. */
export function imported(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("This file is not JSON.");
  }
  if (file?.format !== FORMAT || !Array.isArray(file.conversations)) throw new Error("This file holds no conversations of TurboSpark.");
  if (file.version !== 1) throw new Error(`This file is of version ${file.version}; this page reads version 1.`);
  return file.conversations.map(conversation);
}

// A file is from outside: only what is known is taken, and each value is made what it should be.
function conversation(from, number) {
  if (!Array.isArray(from?.messages)) throw new Error(`Conversation ${number + 1} of this file has no messages.`);
  const updated = Number(from.updated) || Date.now();
  return { id: newId(), title: String(from.title ?? "Imported"), updated, messages: from.messages.map(message) };
}

function message(from) {
  if (from?.role !== "user" && from?.role !== "assistant") throw new Error("A message of this file is neither the user’s nor the model’s.");
  const made = { role: from.role, content: String(from.content ?? "") };
  for (const name of ["reasoning", "note"]) if (from[name]) made[name] = String(from[name]);
  if (Array.isArray(from.calls)) made.calls = from.calls.map((call) => ({ name: String(call?.name), arguments: String(call?.arguments) }));
  return made;
}
