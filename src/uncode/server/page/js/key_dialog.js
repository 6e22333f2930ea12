/** Asks for the server's API key. */

import { el } from "../../../view/js/dom.js";

/**
 * The key that the reader types. It goes to the caller and nowhere else.
 * @param {string} problem why it is asked for again; empty at first
 * @returns {Promise<string>}
 */
export function askForKey(problem) {
  const field = el("input", { type: "password", id: "key", autocomplete: "off", required: true });
  const form = el(
    "form",
    {},
    el("h2", {}, "This server asks for an API key"),
    el("label", { for: "key" }, "API key"),
    field,
    el("p", { class: "hint" }, "It is kept in memory, and forgotten when the page is closed."),
    el("p", { class: "problem", role: "alert" }, problem),
    el("button", { type: "submit", class: "primary" }, "Open"),
  );
  const dialog = el("dialog", { class: "key-dialog", "aria-label": "API key" }, form);
  document.body.append(dialog);
  dialog.showModal();
  dialog.addEventListener("cancel", (event) => event.preventDefault()); // there is nothing to see without a key
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.remove();
      resolve(field.value);
    });
  });
}
