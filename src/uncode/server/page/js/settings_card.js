/** One sampler with its options, as a form that is made from what the server says about its samplers. */

import { el } from "../../../view/js/dom.js";
import { Control } from "./control.js";

/** @typedef {import("./api.js").Model} Model */
/** @typedef {import("./api.js").Sampler} Sampler */

/**
 * A sampler that was chosen.
 * @typedef {object} Chosen
 * @property {string | null} id null for the server's own sampler file, which requests cannot name
 * @property {string} title
 * @property {Record<string, any>} options
 * @property {Record<string, any>} changed the options that are not at their defaults
 * @property {boolean} takesTable
 */

const GROUPS = ["Samplers", "Of this model", "As the released code has it"];

export class SettingsCard {
  /**
   * @param {Model} model
   * @param {Sampler[]} samplers
   * @param {string} name
   * @param {() => void} onChange
   */
  constructor(model, samplers, name, onChange) {
    this.model = model;
    this.onChange = onChange;
    this.length = model.default_length;
    const isFile = !samplers.some(({ id }) => id === model.default_sampler);
    const summary = "The server's own sampler file: it has its own settings.";
    /** @type {Sampler} */
    const own = { id: model.default_sampler, summary, source: "", options: [], takes_table: false, needs_table: false };
    this.samplers = isFile ? [own, ...samplers] : samplers;
    this.file = isFile ? model.default_sampler : null;
    /** @type {Control[]} */
    this.controls = [];
    this.select = this.makeSelect();
    this.summary = el("p", { class: "hint" });
    this.options = el("div", { class: "options" });
    this.title = el("legend", {});
    this.element = el("fieldset", { class: "card" }, this.title, this.select, this.summary, this.options);
    this.setName(name);
    this.choose(model.default_sampler);
  }

  makeSelect() {
    const found = el("select", {});
    GROUPS.forEach((label, at) => {
      const members = this.samplers.filter((one) => groupOf(one) === at).map((one) => this.entry(one));
      if (members.length) found.append(el("optgroup", { label }, ...members));
    });
    found.addEventListener("change", () => this.choose(found.value));
    return found;
  }

  /** @param {Sampler} sampler */
  entry(sampler) {
    const disabled = sampler.needs_table && !this.model.has_frequency_table;
    const text = sampler.id.replace("legacy.", "") + (disabled ? " (needs a table)" : "");
    return el("option", { value: sampler.id, disabled }, text);
  }

  /** @param {string} name */
  setName(name) {
    this.title.textContent = name;
    this.select.setAttribute("aria-label", name);
  }

  get sampler() {
    return /** @type {Sampler} */ (this.samplers.find(({ id }) => id === this.select.value));
  }

  /**
   * Show the options of a sampler, at their defaults.
   * @param {string} id
   */
  choose(id) {
    this.select.value = id;
    const { sampler, model } = this;
    this.summary.textContent = sampler.summary;
    this.summary.title = sampler.source;
    const served = id === model.default_sampler ? model.default_options : {};
    this.controls = sampler.options.map((option) => {
      const isOff = option.name === "informativeness" && !model.has_frequency_table;
      return new Control(option, isOff ? false : (served[option.name] ?? option.default), this.onChange);
    });
    this.options.replaceChildren(...this.controls.map(({ element }) => element));
    this.setLength(this.length);
    this.onChange();
  }

  /** @param {number} length tokens to generate */
  setLength(length) {
    this.length = length;
    for (const control of this.controls) control.setLength(length);
  }

  /** @returns {import("./link.js").SamplerSettings} */
  get settings() {
    return { id: this.sampler.id, options: valuesOf(this.controls) };
  }

  /**
   * Take settings that someone else wrote; whether all of them are ones of this server.
   * @param {import("./link.js").SamplerSettings} settings
   */
  accept({ id, options }) {
    const entry = Array.from(this.select.options).find(({ value, disabled }) => value === id && !disabled);
    if (!entry) return false;
    this.choose(id);
    return acceptAll(this.controls, options);
  }

  /** @returns {Chosen} */
  get chosen() {
    const { sampler } = this;
    const options = valuesOf(this.controls.filter(({ value }) => value !== null));
    const changed = valuesOf(this.controls.filter(({ option, value }) => value !== option.default));
    const shown = Object.entries(changed).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
    const takesTable = sampler.takes_table && options.informativeness !== false;
    const title = [sampler.id.replace("legacy.", ""), ...shown].join(" · ");
    return { id: sampler.id === this.file ? null : sampler.id, title, options, changed, takesTable };
  }
}

/**
 * @param {Control[]} controls
 * @returns {Record<string, any>}
 */
export function valuesOf(controls) {
  return Object.fromEntries(controls.map(({ option, value }) => [option.name, value]));
}

/**
 * Take the values of controls by their names; whether there was one for each of them, and no other.
 * @param {Control[]} controls
 * @param {Record<string, unknown>} values
 */
export function acceptAll(controls, values) {
  const given = new Map(Object.entries(values));
  const taken = controls.filter((one) => given.has(one.option.name) && one.accept(given.get(one.option.name)));
  return taken.length === controls.length && given.size === controls.length;
}

/** @param {Sampler} sampler */
function groupOf({ id, source }) {
  if (id.startsWith("legacy.")) return 2;
  return source === "" ? 1 : 0;
}
