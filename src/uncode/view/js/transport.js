/** Play, pause, step and scrub: one position for all traces of a view. */

import { el, setAttributes, svg } from "./dom.js";

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
/** At speed 1 a decode takes about this many seconds, within the rates below. */
const SECONDS = 10;
const MIN_RATE = 4;
const MAX_RATE = 60;

/** @type {Record<string, string>} */
const ICONS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M12 3v10L5 8z",
  play: "M4 2.5v11L13.5 8z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M4 3v10l7-5z",
  last: "M11 3h2v10h-2zM3 3v10l7-5z",
};

export class Transport {
  /** @param {(position: number) => void} onMove */
  constructor(onMove) {
    this.onMove = onMove;
    this.length = 0;
    this.position = 0;
    this.speed = 1;
    this.isPlaying = false;
    this.frame = 0;
    this.exact = 0;
    this.playIcon = icon("play");
    this.playButton = el("button", { type: "button", class: "play", "aria-label": "Play" }, this.playIcon);
    this.range = el("input", { type: "range", min: 0, step: 1, "aria-label": "Step" });
    this.readout = el("output", { class: "readout" });
    this.speedSelect = el(
      "select",
      { "aria-label": "Speed" },
      ...SPEEDS.map((speed) => el("option", { value: speed, selected: speed === 1 }, `${speed}×`)),
    );
    this.buttons = el(
      "div",
      { class: "buttons", role: "group", "aria-label": "Replay" },
      this.button("first", "First step", () => this.jump(0)),
      this.button("back", "Step back", () => this.jump(this.position - 1)),
      this.playButton,
      this.button("next", "Step forward", () => this.jump(this.position + 1)),
      this.button("last", "Last step", () => this.jump(this.length)),
    );
    this.playButton.addEventListener("click", () => this.toggle());
    this.range.addEventListener("input", () => this.jump(Number(this.range.value)));
    this.speedSelect.addEventListener("change", () => this.setSpeed(Number(this.speedSelect.value)));
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {() => void} onClick
   */
  button(name, label, onClick) {
    const made = el("button", { type: "button", "aria-label": label, title: label }, icon(name));
    made.addEventListener("click", onClick);
    return made;
  }

  /** @param {number} length */
  setLength(length) {
    this.length = length;
    setAttributes(this.range, { max: length });
  }

  /**
   * Move without a change of play or pause.
   * @param {number} position
   */
  move(position) {
    this.position = Math.max(0, Math.min(this.length, position));
    this.range.value = String(this.position);
    const text = `${this.position} of ${this.length}`;
    this.readout.textContent = text;
    setAttributes(this.range, { "aria-valuetext": `${text} steps` });
    this.onMove(this.position);
  }

  /**
   * Pause, and move.
   * @param {number} position
   */
  jump(position) {
    this.pause();
    this.move(position);
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play() {
    if (this.position >= this.length) this.move(0);
    this.isPlaying = true;
    this.showPlaying();
    this.exact = this.position;
    let before = performance.now();
    /** @param {number} now */
    const advance = (now) => {
      this.exact += (Math.max(0, now - before) / 1000) * this.rate();
      before = now;
      const next = Math.min(this.length, Math.floor(this.exact));
      if (next !== this.position) this.move(next);
      if (next >= this.length) this.pause();
      else this.frame = requestAnimationFrame(advance);
    };
    this.frame = requestAnimationFrame(advance);
  }

  pause() {
    cancelAnimationFrame(this.frame);
    this.isPlaying = false;
    this.showPlaying();
  }

  showPlaying() {
    setAttributes(this.playButton, { "aria-label": this.isPlaying ? "Pause" : "Play" });
    setAttributes(/** @type {Element} */ (this.playIcon.firstChild), { d: ICONS[this.isPlaying ? "pause" : "play"] });
  }

  /** Steps a second. */
  rate() {
    return this.speed * Math.max(MIN_RATE, Math.min(MAX_RATE, this.length / SECONDS));
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.speedSelect.value = String(speed);
  }

  /** @param {number} by */
  changeSpeed(by) {
    const at = SPEEDS.indexOf(this.speed) + by;
    this.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))]);
  }

  /**
   * Act on a key; false for keys that mean nothing here.
   * @param {string} key
   */
  press(key) {
    if (key === " ") this.toggle();
    else if (key === "ArrowRight" || key === ".") this.jump(this.position + 1);
    else if (key === "ArrowLeft" || key === ",") this.jump(this.position - 1);
    else if (key === "Home") this.jump(0);
    else if (key === "End") this.jump(this.length);
    else if (key === "+" || key === "=") this.changeSpeed(1);
    else if (key === "-") this.changeSpeed(-1);
    else return false;
    return true;
  }
}

/** @param {string} name */
function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}
