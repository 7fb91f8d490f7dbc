// The list of conversations: open, rename, delete, export, import. On a narrow page it lies over the rest until it's closed.

import { announce, button, byId, el } from "./dom.js";
import { exported, imported } from "./store.js";

const sidebar = byId("sidebar");
const toggle = byId("toggle-sidebar");
const narrow = matchMedia("(max-width: 46rem)");

/** Whether it was open and lay over the page. */
export function close() {
  if (!narrow.matches || !sidebar.classList.contains("open")) return false;
  show(false);
  toggle.focus();
  return true;
}

function show(open) {
  sidebar.classList.toggle("open", open);
  sidebar.classList.toggle("closed", !open);
  toggle.setAttribute("aria-expanded", String(open));
}

/** Asks before what can't be undone. */
function confirmed(question, verb) {
  const dialog = byId("confirm");
  byId("question").textContent = question;
  byId("confirm-yes").textContent = verb;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

/** Draws the list. `actions`: open, rename, remove. */
export function draw(conversations, current, actions) {
  const items = conversations.map((conversation) => item(conversation, conversation === current, actions));
  byId("conversations").replaceChildren(...items);
}

function item(conversation, isCurrent, actions) {
  const { title } = conversation;
  const name = button(title, () => actions.open(conversation), { class: "name", title, "aria-current": isCurrent ? "true" : null });
  const made = el("li", {}, name);
  made.append(
    button("Rename", () => rename(made, conversation, actions), { class: "quiet", "aria-label": `Rename ${title}` }),
    button("Delete", async () => {
      if (await confirmed(`Delete “${title}”?`, "Delete")) actions.remove(conversation);
    }, { class: "quiet", "aria-label": `Delete ${title}` }),
  );
  return made;
}

function rename(home, conversation, actions) {
  const field = el("input", { "aria-label": "New name", maxlength: 200 });
  field.value = conversation.title;
  let over = false;
  const end = (keep) => {
    if (over) return;
    over = true;
    actions.rename(conversation, keep && field.value.trim() ? field.value.trim() : conversation.title);
  };
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.stopPropagation();
    end(event.key === "Enter");
  });
  field.addEventListener("blur", () => end(true));
  home.replaceChildren(field);
  field.select();
}

/** Wires what is beside the list. `all()` gives the conversations, `add` takes new ones. */
export function setUp({ create, all, add, failed }) {
  toggle.addEventListener("click", () => show(toggle.getAttribute("aria-expanded") !== "true"));
  const fit = () => show(!narrow.matches);
  narrow.addEventListener("change", fit);
  fit();
  byId("new").addEventListener("click", create);
  byId("export").addEventListener("click", () => {
    const href = URL.createObjectURL(new Blob([exported(all())], { type: "application/json" }));
    el("a", { href, download: "turbospark-conversations.json" }).click();
    setTimeout(() => URL.revokeObjectURL(href), 1000);
  });
  const file = byId("file");
  byId("import").addEventListener("click", () => file.click());
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      const conversations = imported(await chosen.text());
      add(conversations);
      announce(`${conversations.length} conversations imported`);
    } catch (error) {
      failed(error.message);
    }
    file.value = "";
  });
}
