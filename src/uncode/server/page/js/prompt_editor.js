/**
 * The prompt: a text, or texts with gaps between them.
 *
 * A gap is its own element, so a marker that someone typed or pasted stays text. A gap splits the text where the
 * cursor stands; Backspace at the start of a text removes the gap before it.
 */

import { el } from "../../../view/js/dom.js";

const FIRST_GAP_TOKENS = 4;
const MAX_COLUMNS = 60;

/**
 * A text, and the gap before it; the first text has none.
 * @typedef {{ text: HTMLTextAreaElement, size: HTMLInputElement | null, box: HTMLElement | null }} Piece
 */

export class PromptEditor {
  /**
   * @param {string} text
   * @param {() => void} onChange
   */
  constructor(text, onChange) {
    this.onChange = onChange;
    /** @type {Piece[]} */
    this.pieces = [];
    this.element = el("div", { class: "editor", role: "group", "aria-label": "Prompt" });
    /** Where a new gap goes. @type {Piece} */
    this.last = this.makePiece(text, null);
    this.pieces.push(this.last);
    this.draw();
  }

  get hasGaps() {
    return this.pieces.length > 1;
  }

  /** Tokens of all gaps. */
  get masks() {
    return this.pieces.reduce((sum, { size }) => sum + (size ? tokensOf(size) : 0), 0);
  }

  /**
   * Texts and sizes of gaps, in their order.
   * @returns {(string | number)[]}
   */
  get parts() {
    return this.pieces.flatMap(({ text, size }) => (size ? [tokensOf(size), text.value] : [text.value]));
  }

  /** @param {(string | number)[]} parts */
  set parts(parts) {
    const [first, ...rest] = typeof parts[0] === "string" ? parts : ["", ...parts];
    this.pieces = [this.makePiece(String(first), null)];
    for (const part of rest) {
      if (typeof part === "number") this.pieces.push(this.makePiece("", part));
      else this.pieces[this.pieces.length - 1].text.value += part;
    }
    this.last = this.pieces[0];
    this.draw();
    this.changed();
  }

  /**
   * @param {string} text
   * @param {number | null} size tokens of the gap before the text
   * @returns {Piece}
   */
  makePiece(text, size) {
    const area = el("textarea", { rows: 1, spellcheck: "false", autocapitalize: "off" });
    area.value = text;
    const field = size === null ? null : el("input", { type: "number", min: 1, step: 1, value: size });
    const remove = el("button", { type: "button", title: "Remove the gap" }, "×");
    const blank = el("span", { class: "blank", "aria-hidden": "true" });
    const box = field && el("span", { class: "gap" }, blank, field, remove);
    const piece = { text: area, size: field, box };
    area.addEventListener("focus", () => (this.last = piece));
    area.addEventListener("input", () => this.changed());
    area.addEventListener("keydown", (event) => this.handleKey(event, piece));
    field?.addEventListener("input", () => this.changed());
    remove.addEventListener("click", () => this.removeGap(piece));
    return piece;
  }

  /** Split the text at the cursor, with a gap between the halves. */
  insertGap() {
    const { text } = this.last;
    const [start, end] = [text.selectionStart, text.selectionEnd];
    const made = this.makePiece(text.value.slice(end), FIRST_GAP_TOKENS);
    text.value = text.value.slice(0, start);
    this.pieces.splice(this.pieces.indexOf(this.last) + 1, 0, made);
    this.draw();
    this.changed();
    made.size?.focus();
    made.size?.select();
    this.last = made;
  }

  /** @param {Piece} piece */
  removeGap(piece) {
    const at = this.pieces.indexOf(piece);
    const before = this.pieces[at - 1];
    const cursor = before.text.value.length;
    before.text.value += piece.text.value;
    this.pieces.splice(at, 1);
    this.draw();
    this.changed();
    before.text.focus();
    before.text.setSelectionRange(cursor, cursor);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {Piece} piece
   */
  handleKey(event, piece) {
    const { selectionStart, selectionEnd } = piece.text;
    if (event.key !== "Backspace" || !piece.size || selectionStart !== 0 || selectionEnd !== 0) return;
    event.preventDefault();
    this.removeGap(piece);
  }

  draw() {
    this.element.classList.toggle("gapped", this.hasGaps);
    this.element.replaceChildren(...this.pieces.flatMap(({ text, box }) => (box ? [box, text] : [text])));
    this.pieces.forEach(({ text, size, box }, at) => {
      const isOnly = !this.hasGaps;
      text.setAttribute("aria-label", isOnly ? "Prompt" : `Text ${at + 1} of ${this.pieces.length}`);
      text.placeholder = isOnly ? "Write a prompt" : "";
      size?.setAttribute("aria-label", `Tokens of gap ${at}`);
      box?.lastElementChild?.setAttribute("aria-label", `Remove gap ${at}`);
    });
  }

  changed() {
    for (const { text, size } of this.pieces) {
      fit(text, this.hasGaps);
      if (size) size.style.width = `${Math.max(2, size.value.length) + 2.4}ch`;
    }
    this.onChange();
  }
}

/** @param {HTMLInputElement} field */
function tokensOf(field) {
  return Math.max(1, Math.round(Number(field.value) || 1));
}

/**
 * Make a text as large as its content. Beside gaps it is also as narrow.
 * @param {HTMLTextAreaElement} area
 * @param {boolean} isInline
 */
function fit(area, isInline) {
  const lines = area.value.split("\n");
  const longest = Math.max(...lines.map((line) => line.length));
  area.cols = isInline ? Math.min(MAX_COLUMNS, Math.max(2, longest + 1)) : MAX_COLUMNS;
  area.style.height = "auto";
  if (area.scrollHeight) area.style.height = `${area.scrollHeight + 2}px`;
}
