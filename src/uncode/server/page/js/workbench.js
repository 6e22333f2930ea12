/** The form on the left, the results on the right, and the decodes that join them. */

import { el } from "../../../view/js/dom.js";
import { ConstraintField } from "./constraint_field.js";
import { Control } from "./control.js";
import { DecodeRun } from "./decode_run.js";
import { fragmentOf, readFragment } from "./link.js";
import { PromptEditor } from "./prompt_editor.js";
import { copyButton, Results } from "./results.js";
import { acceptAll, SettingsCard, valuesOf } from "./settings_card.js";

/** @typedef {import("./api.js").Api} Api */
/** @typedef {import("./api.js").Model} Model */
/** @typedef {import("./api.js").Option} Option */
/** @typedef {import("./api.js").Sampler} Sampler */
/** @typedef {import("./recipe.js").Recipe} Recipe */

/** The end of the slider. A longer answer can be typed. */
const MAX_SLIDER_TOKENS = 512;
/** Browsers refuse to change an address more often than about three times a second. */
const REMEMBER_MS = 300;
const LINK_TITLE = "The prompt, the samplers and their options, in the address of this page";
const NAMES = ["Sampler A", "Sampler B"];

/** @type {Option} */
const SEED = { name: "seed", kind: "int", default: 0, meaning: "of all randomness; the same seed gives the same text" };
/** @type {Option} */
const STOP = { name: "stop_at_eos", kind: "bool", default: true, meaning: "end the answer at its first EOS token" };
/** @type {Option} */
const CHAT = { name: "chat", kind: "bool", default: true, meaning: "use the model's chat template" };

export class Workbench {
  /**
   * @param {Api} api
   * @param {Model} model
   * @param {Sampler[]} samplers
   */
  constructor(api, model, samplers) {
    this.api = api;
    this.model = model;
    this.samplers = samplers;
    /** @type {DecodeRun[]} */
    this.runs = [];
    this.results = new Results();
    this.problem = el("p", { class: "problem", role: "alert" });
    this.status = el("p", { class: "progress", role: "status" });
    this.decodeButton = button("Decode", "primary", () => (this.runs.length ? this.stop() : this.decode()));
    this.gapButton = button("Insert a gap", "quiet", () => this.prompt.insertGap());
    this.compareButton = button("Compare with another sampler", "quiet", () => this.compare().select.focus());
    this.linkButton = copyButton("Copy a link", () => this.remember(), null);
    this.timer = 0;
    const changed = () => this.rememberSoon();
    this.length = this.makeLength();
    this.seed = new Control(SEED, 0, changed);
    this.stops = new Control(STOP, true, changed);
    this.chat = new Control(CHAT, model.has_chat_template, changed);
    this.constraint = new ConstraintField(changed);
    this.shared = [this.length, this.seed, this.stops, ...(model.has_chat_template ? [this.chat] : [])];
    this.cards = [new SettingsCard(model, samplers, "Sampler", changed)];
    this.prompt = new PromptEditor(model.example, () => this.measure());
    this.cardBox = el("div", { class: "cards" }, this.cards[0].element);
    this.element = this.build();
    this.measure();
    /** The page as it opens: its address stays as it is. */
    this.untouched = fragmentOf(this.settings);
  }

  build() {
    const form = el(
      "form",
      { class: "form", "aria-label": "Decode" },
      el("div", { class: "prompt-box" }, el("h2", {}, "Prompt"), this.gapButton, this.prompt.element),
      el("div", { class: "shared options" }, ...this.shared.map(({ element }) => element), this.constraint.element),
      this.cardBox,
      el("div", { class: "more" }, this.compareButton, this.linkButton),
      el("div", { class: "go" }, this.problem, this.decodeButton, this.status),
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    return el("div", { class: "bench" }, form, this.results.element);
  }

  makeLength() {
    const { context, default_length: start } = this.model;
    const most = Math.min(context ?? MAX_SLIDER_TOKENS, MAX_SLIDER_TOKENS);
    /** @type {Option} */
    const option = {
      name: "length",
      kind: "int",
      default: start,
      meaning: "tokens to generate after the prompt",
      slider: { min: 1, max: most, step: 1 },
    };
    return new Control(option, start, () => this.measure());
  }

  /** The number of masks has changed: sliders end at it, and gaps leave no answer to measure. */
  measure() {
    const { hasGaps, masks } = this.prompt;
    for (const card of this.cards) card.setLength(hasGaps ? masks : this.length.value);
    for (const { element } of [this.length, this.stops, this.chat, this.constraint]) element.hidden = hasGaps;
    this.rememberSoon();
  }

  /** @returns {import("./link.js").Settings} */
  get settings() {
    const samplers = this.cards.map((card) => card.settings);
    const constraint = this.constraint.settings;
    return { parts: this.prompt.parts, shared: valuesOf(this.shared), samplers, ...(constraint && { constraint }) };
  }

  rememberSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.remember(), REMEMBER_MS);
  }

  /** Write the settings into the address, and return it. */
  remember() {
    const fragment = fragmentOf(this.settings);
    const isAsOpened = fragment === this.untouched;
    history.replaceState(null, "", isAsOpened || !fragment ? location.pathname + location.search : fragment);
    this.linkButton.disabled = !fragment;
    this.linkButton.title = fragment ? LINK_TITLE : "The prompt is too long for a link: a reload forgets it";
    return location.href;
  }

  /**
   * Take the settings of an address. They fill the form, and nothing is decoded.
   * @param {string} fragment
   */
  restore(fragment) {
    if (fragment.length < 2) return;
    const found = readFragment(fragment);
    if (!found) return this.showProblem("the link cannot be read: it is cut off, or not of this page.");
    this.prompt.parts = found.parts;
    if (found.samplers.length !== this.cards.length) this.compare();
    const areKnown = this.cards.map((card, at) => card.accept(found.samplers[at]));
    areKnown.push(acceptAll(this.shared, found.shared), this.constraint.accept(found.constraint));
    const isWhole = !areKnown.includes(false);
    this.measure();
    this.showProblem(isWhole ? "" : "the link is of another server: check the sampler and its options.");
  }

  /** Add the other sampler or remove it; returns the last card. */
  compare() {
    if (this.cards.length > 1) {
      this.cards.pop()?.element.remove();
    } else {
      const card = new SettingsCard(this.model, this.samplers, NAMES[1], () => this.rememberSoon());
      const other = this.samplers.find(({ id }) => id === "confidence" && id !== this.cards[0].chosen.id);
      if (other) card.choose(other.id);
      this.cards.push(card);
      this.cardBox.append(card.element);
    }
    const isTwo = this.cards.length > 1;
    this.cards[0].setName(isTwo ? NAMES[0] : "Sampler");
    this.compareButton.textContent = isTwo ? "Compare no longer" : "Compare with another sampler";
    this.measure();
    return this.cards[this.cards.length - 1];
  }

  /** @returns {Recipe[]} */
  recipes() {
    const { hasGaps, parts } = this.prompt;
    const fallback = { model: this.model.id, revision: null, dtype: null, weights: null, guidance: 0, frequency: null };
    return this.cards.map((card) => ({
      origin: this.model.origin ?? fallback,
      parts,
      isChat: !hasGaps && this.model.has_chat_template && this.chat.value,
      chosen: card.chosen,
      length: hasGaps ? null : this.length.value,
      constraint: hasGaps ? null : this.constraint.value,
      seed: this.seed.value,
      stopsAtEos: this.stops.value,
      row: null,
    }));
  }

  async decode() {
    /** @type {Recipe[]} */
    let recipes;
    try {
      recipes = this.recipes();
    } catch (error) {
      return this.showProblem(/** @type {Error} */ (error).message);
    }
    this.runs = recipes.map((recipe) => new DecodeRun(this.api, ...requestOf(this.model.id, recipe)));
    const runs = this.runs;
    this.showRunning("Decoding …");
    this.results.markAsOld(true);
    try {
      const openings = await Promise.all(runs.map((run) => run.open()));
      await this.results.follow(runs, openings, recipes);
      this.showEnded(this.results.outcome());
    } catch (error) {
      const which = runs.findIndex((run) => run.error === error);
      runs.forEach((run) => run.stop());
      this.results.clear();
      const name = runs.length > 1 && which >= 0 ? `${NAMES[which]}: ` : "";
      const message = error instanceof Error ? error.message : String(error);
      const isStopped = error instanceof Error && error.name === "AbortError";
      this.showEnded(isStopped ? "Stopped." : "", isStopped ? "" : name + message);
    }
  }

  stop() {
    this.runs.forEach((run) => run.stop());
  }

  /** @param {string} text */
  showRunning(text) {
    this.problem.textContent = "";
    this.status.textContent = text;
    this.decodeButton.textContent = "Stop";
    this.decodeButton.classList.add("stop");
  }

  /**
   * @param {string} text
   * @param {string} [problem]
   */
  showEnded(text, problem = "") {
    this.runs = [];
    this.status.textContent = text;
    this.showProblem(problem);
    this.decodeButton.textContent = "Decode";
    this.decodeButton.classList.remove("stop");
  }

  /** @param {string} problem empty for none */
  showProblem(problem) {
    this.problem.textContent = sentence(problem);
  }

  isInPrompt() {
    return this.prompt.element.contains(document.activeElement);
  }

  /**
   * Act on a key; whether it meant something.
   * @param {KeyboardEvent} event
   */
  handleKey(event) {
    const withCtrl = event.ctrlKey || event.metaKey;
    if (event.key === "Escape" && this.runs.length) this.stop();
    else if (withCtrl && event.key === "Enter" && !this.runs.length) this.decode();
    else if (withCtrl && event.key === "g" && this.isInPrompt()) this.prompt.insertGap();
    else return false;
    return true;
  }
}

/**
 * The path and the body of a decode.
 * @param {string} model
 * @param {Recipe} recipe
 * @returns {[string, object]}
 */
function requestOf(model, { parts, isChat, chosen, length, constraint, seed, stopsAtEos }) {
  const sampler = chosen.id === null ? {} : { sampler: chosen.id, ...chosen.options };
  const body = { model, ...sampler, seed };
  if (length === null) return ["v1/completions", { ...body, infill: parts.filter((part) => part !== "") }];
  const answer = { ...body, max_tokens: length, stop_at_eos: stopsAtEos, ...(constraint && { constraint }) };
  if (!isChat) return ["v1/completions", { ...answer, prompt: parts.join("") }];
  return ["v1/chat/completions", { ...answer, messages: [{ role: "user", content: parts.join("") }] }];
}

/**
 * @param {string} text
 * @param {string} kind
 * @param {() => void} onClick
 */
function button(text, kind, onClick) {
  const made = el("button", { type: "button", class: kind }, text);
  made.addEventListener("click", onClick);
  return made;
}

/** @param {string} text */
function sentence(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
