/** The control of one setting: a slider with a number, a choice, or a box to tick. */

import { el, setAttributes } from "../../../view/js/dom.js";

/** @typedef {import("./api.js").Option} Option */

let controls = 0;

export class Control {
  /**
   * @param {Option} option
   * @param {any} value null where the option is off
   * @param {() => void} onChange
   */
  constructor(option, value, onChange) {
    this.option = option;
    this.start = value;
    this.onChange = onChange;
    this.id = `control-${(controls += 1)}`;
    /** The length that the slider may end at. */
    this.length = 1;
    const { kind } = option;
    this.field = kind === "choice" ? this.makeChoice() : this.makeInput();
    this.slider = option.slider ? this.makeSlider() : null;
    const label = el("label", { for: this.id }, nameOf(option));
    const hint = el("p", { class: "hint", id: `${this.id}-hint` }, option.meaning);
    const slider = this.slider ? [this.slider] : [];
    this.element = el("div", { class: `control ${kind}` }, label, this.field, ...slider, hint);
    this.value = value;
  }

  makeChoice() {
    const found = el(
      "select",
      { id: this.id, "aria-describedby": `${this.id}-hint` },
      ...(this.option.choices ?? []).map((choice) => el("option", { value: choice }, choice.replaceAll("_", " "))),
    );
    found.addEventListener("change", this.onChange);
    return found;
  }

  makeInput() {
    const isBox = this.option.kind === "bool";
    const type = isBox ? "checkbox" : "number";
    const found = el("input", { id: this.id, type, "aria-describedby": `${this.id}-hint` });
    if (isBox) {
      found.addEventListener("change", this.onChange);
      return found;
    }
    const step = this.option.kind === "int" ? 1 : "any";
    setAttributes(found, { step, placeholder: this.start === null ? "none" : "" });
    found.addEventListener("input", () => {
      this.showOnSlider();
      this.onChange();
    });
    found.addEventListener("change", () => {
      const { value } = this; // of an empty field, its default
      this.value = value;
    });
    return found;
  }

  makeSlider() {
    const { min, step } = /** @type {NonNullable<Option["slider"]>} */ (this.option.slider);
    const label = `${nameOf(this.option)}, slider`;
    const found = el("input", { type: "range", min, step, "aria-label": label });
    found.addEventListener("input", () => {
      this.field.value = found.value;
      this.showOnSlider();
      this.onChange();
    });
    return found;
  }

  /** @returns {any} */
  get value() {
    const { field } = this;
    if (this.option.kind === "bool") return /** @type {HTMLInputElement} */ (field).checked;
    if (this.option.kind === "choice") return field.value;
    return field.value.trim() === "" || Number.isNaN(Number(field.value)) ? this.start : Number(field.value);
  }

  set value(value) {
    const { field } = this;
    if (this.option.kind === "bool") /** @type {HTMLInputElement} */ (field).checked = value;
    else field.value = value === null ? "" : String(value);
    this.showOnSlider();
  }

  /**
   * Take a value that someone else wrote; whether it is one of this setting.
   * @param {unknown} value
   */
  accept(value) {
    const { kind, choices = [] } = this.option;
    const isNumber = kind === "int" ? Number.isSafeInteger(value) : Number.isFinite(value);
    const isChoice = kind === "choice" ? choices.includes(String(value)) : typeof value === "boolean";
    const fits = kind === "int" || kind === "float" ? isNumber : isChoice;
    const isTaken = fits || (value === null && this.start === null);
    if (isTaken) this.value = value;
    return isTaken;
  }

  /**
   * The number of tokens to generate has changed.
   * @param {number} length
   */
  setLength(length) {
    this.length = length;
    this.showOnSlider();
  }

  showOnSlider() {
    if (!this.slider || !this.option.slider) return;
    const max = this.option.slider.max ?? Math.max(2, this.length);
    const { value } = this;
    setAttributes(this.slider, { max, "aria-valuetext": value === null ? "none" : String(value) });
    this.slider.value = String(value ?? max);
    this.slider.classList.toggle("off", value === null);
  }
}

/** @param {Option} option */
function nameOf({ name }) {
  return name.replaceAll("_", " ").replace("eos", "EOS");
}
