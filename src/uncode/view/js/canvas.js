/**
 * The canvas of one trace: an element per offset. Between two times only the cells that differ are drawn again.
 *
 * In a finished trace the element of a masked cell shows the token that the cell will hold, and the cover hides it.
 * While a decode runs, and where drafts are shown, the element itself is masked.
 */

import { NO_SHADE } from "./colour.js";
import { Cover } from "./cover.js";
import { el, setAttributes } from "./dom.js";
import { quoted, tokenText, visible } from "./text.js";

/** @typedef {import("./colour.js").Colouring} Colouring */
/** @typedef {import("./model.js").Cell} Cell */
/** @typedef {import("./model.js").TraceModel} TraceModel */

const MASK_WIDTH = "\u00a0\u00a0";

/** A replay that has rested for this long tells screen readers which cells are masked. */
const LABEL_MS = 100;
/** Marks above and below a letter may stand out of its cell, so that the cover would not hide them. */
const STANDS_OUT = /\p{M}/u;

let canvases = 0;

export class CanvasView {
  /**
   * @param {TraceModel} model
   * @param {Colouring} colouring
   * @param {string} label
   * @param {(offset: number | null, isPinned: boolean) => void} onActive called when the reader points at a token
   */
  constructor(model, colouring, label, onActive) {
    this.model = model;
    this.colouring = colouring;
    this.onActive = onActive;
    this.time = 0;
    this.withDrafts = false;
    /** Cells at this time. */
    this.cells = model.start.slice();
    /** @type {number | null} */
    this.active = null;
    /** @type {number | null} */
    this.related = null;
    this.id = `canvas-${(canvases += 1)}`;
    /** Marks that do not change with time. @type {string[]} */
    this.marks = Array.from({ length: model.length }, (_, offset) => (model.answer.has(offset) ? " answer" : ""));
    /** What each token shows: an element is only touched where that changes. */
    this.drawn = this.cells.map(() => ({ text: "", name: "", label: /** @type {string | null} */ (null) }));
    /** The cell that each element shows. @type {Cell[]} */
    this.looks = [];
    this.element = el("div", {
      class: "canvas",
      role: "listbox",
      tabindex: 0,
      "aria-label": label,
      "aria-orientation": "horizontal",
    });
    if (model.lead) this.element.append(el("span", { class: "lead" }, visible(model.lead)));
    /** What stands before and after each token. @type {{ before: Text, gap: HTMLElement, after: Text }[]} */
    this.around = [];
    this.tokens = model.cells.map((_, offset) => this.makeToken(offset));
    this.tokens.forEach((_, offset) => this.drawAround(offset));
    this.cover = new Cover(this.element, this.tokens);
    this.frame = el("div", { class: "frame" }, this.element, this.cover.element);
    this.isPrinted = false;
    this.labelTimer = 0;
    this.restart();
    this.listen();
  }

  /** @param {number} offset */
  makeToken(offset) {
    const id = `${this.id}-${offset}`;
    const token = el("span", { role: "option", "aria-selected": "false", id, "data-at": offset });
    const around = { before: document.createTextNode(""), gap: el("wbr"), after: document.createTextNode("") };
    this.around.push(around);
    this.element.append(around.before, around.gap, token, around.after);
    return token;
  }

  /**
   * The blanks before a token and the line breaks after it. While a decode runs they come with the token.
   * @param {number} offset
   */
  drawAround(offset) {
    const { blanks, word, breaks } = this.textOf(this.model.finalCells[offset] ?? this.cells[offset]);
    const { before, gap, after } = this.around[offset];
    const mayBreak = word === MASK_WIDTH || (word.length === 1 && blanks === "");
    if (before.data !== blanks) before.data = blanks;
    if (gap.hidden === mayBreak) gap.hidden = !mayBreak;
    if (after.data !== breaks) after.data = breaks;
  }

  /** Draw everything again: the decode has ended, and the texts of all cells are known. */
  restart() {
    this.time = 0;
    this.cells = this.model.start.slice();
    if (this.model.isFinished) this.tokens.forEach((_, offset) => this.drawAround(offset));
    this.drawAll();
  }

  /**
   * @param {Cell} cell
   */
  textOf(cell) {
    if (cell.kind === "masked") return { blanks: "", word: MASK_WIDTH, breaks: "" };
    return tokenText(cell.text, cell.isEos);
  }

  /**
   * Show the canvas at a time.
   * @param {number} time
   */
  moveTo(time) {
    const changes = this.model.changes(this.time, time);
    this.time = time;
    for (const [offset, cell] of changes) {
      this.cells[offset] = cell;
      this.cover.hidden[offset] = this.isCovered(offset);
      if (this.looks[offset] !== this.lookOf(offset)) this.draw(offset);
    }
    if (this.withDrafts) this.drawMasked();
    this.cover.draw();
    this.labelSoon();
  }

  /** @param {Colouring} colouring */
  recolour(colouring) {
    this.colouring = colouring;
    this.drawAll();
  }

  /** @param {boolean} shown */
  showDrafts(shown) {
    this.withDrafts = shown;
    this.drawAll();
  }

  /**
   * On paper the lines break elsewhere, so that the boxes of the cover would not fit.
   * @param {boolean} isPrinted
   */
  setPrinted(isPrinted) {
    this.isPrinted = isPrinted;
    this.drawAll();
  }

  drawAll() {
    this.cells.forEach((_, offset) => this.draw(offset));
    this.cover.draw();
  }

  drawMasked() {
    this.cells.forEach((cell, offset) => {
      if (cell.kind === "masked") this.draw(offset);
    });
  }

  /** @param {number | null} offset */
  markDivergence(offset) {
    this.marks = this.marks.map((mark, at) => mark.replace(" divergence", "") + (at === offset ? " divergence" : ""));
    this.drawAll();
  }

  /**
   * Whether the cell is masked, and the cover hides what its element shows.
   * @param {number} offset
   */
  isCovered(offset) {
    if (this.cells[offset].kind !== "masked" || this.withDrafts || this.isPrinted) return false;
    const final = this.model.finalCells[offset];
    return final !== undefined && final.kind !== "masked" && !STANDS_OUT.test(final.text);
  }

  /**
   * The cell that the element shows.
   * @param {number} offset
   */
  lookOf(offset) {
    return this.isCovered(offset) ? this.model.finalCells[offset] : this.cells[offset];
  }

  /** @param {number} offset */
  draw(offset) {
    const cell = this.lookOf(offset);
    this.looks[offset] = cell;
    this.cover.hidden[offset] = this.isCovered(offset);
    const token = this.tokens[offset];
    const draft = this.draftOf(offset, cell);
    const drawn = this.drawn[offset];
    const text = this.wordOf(offset, cell, draft);
    if (drawn.text !== text) {
      token.textContent = drawn.text = text;
      this.cover.invalidate();
    }
    if (!this.model.isFinished) this.drawAround(offset);
    const name = this.classOf(offset, cell, draft !== null);
    if (drawn.name !== name) token.className = drawn.name = name;
    if (!this.model.isFinished) this.label(offset);
  }

  /** @param {number} offset */
  label(offset) {
    const cell = this.cells[offset];
    const label = labelOf(cell, this.draftOf(offset, cell));
    const drawn = this.drawn[offset];
    if (drawn.label !== label) setAttributes(this.tokens[offset], { "aria-label": (drawn.label = label) });
  }

  /** Label all tokens when the replay rests: nobody listens to a thousand tokens in a frame. */
  labelSoon() {
    clearTimeout(this.labelTimer);
    this.labelTimer = setTimeout(() => this.cells.forEach((_, offset) => this.label(offset)), LABEL_MS);
  }

  /**
   * @param {number} offset
   * @param {Cell} cell
   */
  draftOf(offset, cell) {
    const text = this.withDrafts && cell.kind === "masked" ? this.model.drafts[this.time - 1]?.[offset] : "";
    return text ? text : null;
  }

  /**
   * A masked cell holds its final text, which is not visible then, so that no text moves when it is written.
   * @param {number} offset
   * @param {Cell} cell
   * @param {string | null} draft
   */
  wordOf(offset, cell, draft) {
    if (draft !== null) return tokenText(draft, false).word;
    return this.textOf(cell.kind === "masked" ? (this.model.finalCells[offset] ?? cell) : cell).word;
  }

  /**
   * @param {number} offset
   * @param {Cell} cell
   * @param {boolean} isDraft
   */
  classOf(offset, cell, isDraft) {
    const shade = this.colouring.shade(cell, this.model);
    let name = `t ${isDraft ? "draft" : cell.kind}${this.marks[offset]}`;
    if (this.model.isForced(cell)) name += " forced";
    else if (cell.kind === "written") name += shade === NO_SHADE ? " unknown" : ` s${shade}`;
    if (cell.isEos) name += " eos";
    if (offset === this.active) name += " active";
    if (offset === this.related) name += " related";
    return name;
  }

  /**
   * Mark the token that the reader points at, and the one it beat.
   * @param {number | null} offset
   * @param {number | null} related
   */
  mark(offset, related) {
    const former = [this.active, this.related];
    this.active = offset;
    this.related = related;
    for (const at of new Set([...former, offset, related])) if (at !== null) this.draw(at);
    if (former[0] !== null) this.tokens[former[0]].setAttribute("aria-selected", "false");
    if (offset !== null) this.label(offset);
    if (offset !== null) this.tokens[offset].setAttribute("aria-selected", "true");
    setAttributes(this.element, { "aria-activedescendant": offset === null ? null : this.tokens[offset].id });
  }

  listen() {
    this.element.addEventListener("pointerover", (event) => {
      if (event.pointerType !== "touch") this.point(event.target, false);
    });
    this.element.addEventListener("pointerleave", () => this.onActive(null, false));
    this.element.addEventListener("click", (event) => this.point(event.target, true));
    this.element.addEventListener("focus", () => {
      if (this.element.matches(":focus-visible")) this.onActive(this.active ?? 0, true);
    });
    this.element.addEventListener("blur", () => this.onActive(null, true));
    this.element.addEventListener("keydown", (event) => {
      const offset = this.offsetAfter(event.key);
      if (offset === null || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      this.onActive(offset, true);
      this.tokens[offset].scrollIntoView({ block: "nearest" });
    });
  }

  /**
   * @param {EventTarget | null} target
   * @param {boolean} isPinned
   */
  point(target, isPinned) {
    const token = target instanceof HTMLElement ? target.closest("[data-at]") : null;
    if (token instanceof HTMLElement) this.onActive(Number(token.dataset.at), isPinned);
    else if (isPinned) this.onActive(null, true);
  }

  close() {
    clearTimeout(this.labelTimer);
    this.cover.close();
  }

  /**
   * The offset that a key moves to; null for other keys.
   * @param {string} key
   * @returns {number | null}
   */
  offsetAfter(key) {
    const at = this.active ?? 0;
    const last = this.model.length - 1;
    if (key === "ArrowRight") return Math.min(last, at + 1);
    if (key === "ArrowLeft") return Math.max(0, at - 1);
    if (key === "ArrowDown") return this.offsetBelow(at, 1);
    if (key === "ArrowUp") return this.offsetBelow(at, -1);
    if (key === "Home") return 0;
    if (key === "End") return last;
    return null;
  }

  /**
   * The nearest token of the next line (`direction` 1) or of the one before (-1).
   * @param {number} from
   * @param {number} direction
   */
  offsetBelow(from, direction) {
    const start = this.tokens[from].getBoundingClientRect();
    let best = from;
    let distance = Infinity;
    let line = NaN;
    for (let at = from + direction; at >= 0 && at < this.tokens.length; at += direction) {
      const box = this.tokens[at].getClientRects()[0];
      if (Math.abs(box.top - start.top) < box.height / 2) continue;
      if (Number.isNaN(line)) line = box.top;
      if (Math.abs(box.top - line) > box.height / 2) break;
      if (Math.abs(box.left - start.left) < distance) {
        best = at;
        distance = Math.abs(box.left - start.left);
      }
    }
    return best;
  }
}

/**
 * What a screen reader says of a cell, where it is not its text.
 * @param {Cell} cell
 * @param {string | null} draft
 */
function labelOf(cell, draft) {
  if (draft !== null) return `masked, draft ${quoted(draft)}`;
  if (cell.kind === "masked") return "masked";
  if (cell.kind === "erased") return `erased ${quoted(cell.text)}`;
  if (cell.isEos) return cell.kind === "filled" ? "EOS, filled by the stop rule" : "EOS";
  return null;
}
