/** The constraint of the answer: what it is made of, and its text. */

import { el } from "../../../view/js/dom.js";

/** @typedef {{ kind: string, text: string }} ConstraintSettings */
/** @typedef {"json" | { regex: string } | { choices: string[] } | { json_schema: any }} Constraint */

/** @type {Record<string, string>} */
const KINDS = {
  none: "none",
  regex: "a regular expression",
  choices: "one of these lines",
  json_schema: "a JSON schema",
  json: "any JSON",
};

export class ConstraintField {
  /** @param {() => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    const options = Object.entries(KINDS).map(([value, text]) => el("option", { value }, text));
    this.select = el("select", { id: "constraint" }, ...options);
    this.area = el("textarea", { rows: 3, spellcheck: "false", autocapitalize: "off" });
    this.area.setAttribute("aria-label", "text of the constraint");
    const label = el("label", { for: "constraint" }, "constraint");
    this.element = el("div", { class: "control constraint" }, label, this.select);
    this.select.addEventListener("change", () => this.show());
    this.area.addEventListener("input", onChange);
    this.show();
  }

  /** Whether this kind has a text. */
  get hasText() {
    return this.select.value !== "none" && this.select.value !== "json";
  }

  show() {
    if (this.hasText) this.element.append(this.area);
    else this.area.remove();
    this.onChange();
  }

  /** @returns {ConstraintSettings | null} null where there is none */
  get settings() {
    const { value } = this.select;
    return value === "none" ? null : { kind: value, text: this.hasText ? this.area.value : "" };
  }

  /**
   * Take settings that someone else wrote; whether they are ones of this field.
   * @param {any} settings
   */
  accept(settings) {
    const { kind, text } = settings ?? { kind: "none", text: "" };
    const fits = Object.hasOwn(KINDS, kind) && typeof text === "string";
    this.select.value = fits ? kind : "none";
    this.area.value = fits ? text : "";
    this.show();
    return fits;
  }

  /**
   * The constraint as the server takes it; null for none.
   * @returns {Constraint | null}
   */
  get value() {
    const { settings } = this;
    if (settings === null || settings.kind === "json") return settings && "json";
    const { kind, text } = settings;
    if (kind === "regex") return { regex: text };
    if (kind === "choices") return { choices: text.split("\n").filter((line) => line !== "") };
    return { json_schema: schemaOf(text) };
  }
}

/**
 * A schema from its text.
 * @param {string} text
 */
function schemaOf(text) {
  let isExact = true;
  /** @param {unknown} one */
  const check = (one) => typeof one !== "number" || Math.abs(one) <= Number.MAX_SAFE_INTEGER;
  let schema;
  try {
    schema = JSON.parse(text, (_, one) => ((isExact &&= check(one)), one));
  } catch {
    throw new Error("the JSON schema is no JSON: write an object.");
  }
  if (!isExact) throw new Error("the JSON schema has a number that a browser would round: send it to the API.");
  return schema;
}
