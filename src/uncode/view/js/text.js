/** Tokens and numbers as text for the reader. */

export const EOS_SIGN = "∎";
const BREAK = "↵";
const SPACE = "␣";
const NO_TEXT = "·";

/** The paper's list of trivial tokens; a test compares it with `uncode.core.trace.texts.TRIVIAL`. */
export const TRIVIAL = [
  " ", "\n", "\t", ".", ",", "?", "!", ":", ";", "\\", "\"", "'", "$", "is", "the", "of", "a", "an"
];
const BLANK = [" ", "\n", "\t"];

/** Control characters, marks that change the direction of text, line separators and lone surrogates. */
const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
    "\\ufeff\\ufff9-\\ufffb]" +
    "|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]",
  "g",
);

/**
 * The text with characters that are invisible or change the order of others written as escapes (`\u202e`).
 * Line feeds and tabs stay.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(HIDDEN, (found) => "\\u" + found.charCodeAt(0).toString(16).padStart(4, "0"));
}

/**
 * `1 row`, `2 rows`.
 * @param {number} count
 * @param {string} noun
 */
export function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A token on the canvas: the blanks before its cell, what is shown in it, and the line breaks after it.
 * @param {string} text
 * @param {boolean} isEos
 * @returns {{ blanks: string, word: string, breaks: string }}
 */
export function tokenText(text, isEos) {
  if (isEos) return { blanks: "", word: EOS_SIGN, breaks: "" };
  if (text === "") return { blanks: "", word: NO_TEXT, breaks: "" };
  const word = text.replace(/^ +/, "");
  if (word === "") return { blanks: "", word: SPACE.repeat(text.length), breaks: "" };
  const shown = visible(word.replace(/\r\n/g, "\n"));
  const breaks = shown.replace(/[^\n]/g, "");
  return { blanks: " ".repeat(text.length - word.length), word: signs(shown), breaks };
}

/**
 * A token in a sentence, in quotation marks.
 * @param {string} text
 */
export function quoted(text) {
  return "“" + signs(visible(text)).replace(/ /g, SPACE) + "”";
}

/**
 * Line feeds and tabs as signs.
 * @param {string} text
 */
function signs(text) {
  return text.replace(/\n/g, BREAK).replace(/\t/g, "⇥");
}

/**
 * Whether a token reads as one of the paper's trivial tokens, with or without a space before.
 * @param {string} text
 */
export function isTrivial(text) {
  if (BLANK.includes(text)) return true;
  const bare = text.replace(/^ +| +$/g, "");
  return TRIVIAL.includes(bare) && !BLANK.includes(bare);
}

/**
 * A number with three significant digits; an en dash if it was not recorded.
 * @param {number | null | undefined} value
 */
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.001 || size >= 100000) return value.toExponential(1).replace("-", "−").replace("e-", "e−");
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/**
 * A probability; most of those that are committed are near 1.
 * @param {number | null | undefined} logp
 */
export function probability(logp) {
  if (logp === null || logp === undefined) return "–";
  const value = Math.exp(logp);
  return value > 0.999 && value < 1 ? "> 0.999" : number(value);
}

/** @param {number} share */
export function percent(share) {
  return `${Math.round(100 * share)} %`;
}
