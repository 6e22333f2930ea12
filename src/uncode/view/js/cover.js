/**
 * Hides the masked cells of a finished trace.
 *
 * A cell of a finished trace has one look, from its commit to the end. So its element never changes in a replay: one
 * SVG path above the text has a box for each masked cell. A jump across a thousand steps is then one attribute instead
 * of the style of a thousand elements.
 */

import { svg } from "./dom.js";

/** Less is cut than the radius of a token's corners leaves free, so that nothing of the token is seen. */
const CORNER = 2;

export class Cover {
  /**
   * @param {HTMLElement} canvas
   * @param {HTMLElement[]} tokens
   */
  constructor(canvas, tokens) {
    this.canvas = canvas;
    this.tokens = tokens;
    this.path = svg("path", {});
    this.element = svg("svg", { class: "cover", "aria-hidden": "true" }, this.path);
    /** The boxes of each token as a path, a box per line; null if the text may have moved. @type {string[] | null} */
    this.boxes = null;
    /** @type {boolean[]} */
    this.hidden = tokens.map(() => false);
    this.observer = new ResizeObserver(() => {
      this.boxes = null;
      this.draw();
    });
    this.observer.observe(canvas);
  }

  /** The text has moved. */
  invalidate() {
    this.boxes = null;
  }

  /** Draw the boxes of the hidden cells. */
  draw() {
    if (this.hidden.includes(true)) this.boxes ??= this.measure();
    const { boxes } = this;
    let path = "";
    if (boxes) this.hidden.forEach((isHidden, offset) => (path += isHidden ? boxes[offset] : ""));
    this.path.setAttribute("d", path);
  }

  measure() {
    const { left, top } = this.canvas.getBoundingClientRect();
    return this.tokens.map((token) => {
      const border = parseFloat(getComputedStyle(token).borderBottomWidth); // the mark of the answer stays visible
      return Array.from(token.getClientRects(), (box) => boxPath(box, left, top, border)).join("");
    });
  }

  close() {
    this.observer.disconnect();
  }
}

/**
 * A box of whole pixels with cut corners: they look round at this size, and are quicker to paint than arcs. A token
 * with a border below is square there, and so is its box.
 * @param {DOMRect} box
 * @param {number} left
 * @param {number} top
 * @param {number} border height of the border below
 */
function boxPath(box, left, top, border) {
  const c = border ? 0 : CORNER;
  const x = Math.floor(box.left - left);
  const y = Math.floor(box.top - top);
  const bottom = border ? Math.floor(box.bottom - top - border) : Math.ceil(box.bottom - top);
  const width = Math.max(0, Math.ceil(box.right - left) - x - 2 * c);
  const height = Math.max(0, bottom - y - 2 * c);
  return `M${x + c} ${y}h${width}l${c} ${c}v${height}l-${c} ${c}h-${width}l-${c}-${c}v-${height}z`;
}
