/**
 * The settings of the page as the fragment of its address. A reload keeps them, and a link shares them. The browser
 * sends no fragment to a server.
 */

/**
 * A sampler and the values of all its options; null is an option that is off.
 * @typedef {{ id: string, options: Record<string, unknown> }} SamplerSettings
 */

/**
 * @typedef {object} Settings
 * @property {(string | number)[]} parts texts and sizes of gaps
 * @property {Record<string, unknown>} shared length, seed and what else all samplers share
 * @property {SamplerSettings[]} samplers one or two
 * @property {import("./constraint_field.js").ConstraintSettings} [constraint] where there is one
 */

/** Characters. Browsers cut addresses of about two million. */
const MAX_FRAGMENT = 65536;
const MAX_PARTS = 200;

/**
 * The fragment of these settings; empty where they are too long for one.
 * @param {Settings} settings
 */
export function fragmentOf(settings) {
  const fragment = `#${encodeURIComponent(JSON.stringify(settings))}`;
  return fragment.length > MAX_FRAGMENT ? "" : fragment;
}

/**
 * The settings of a fragment; null where it has none. Anyone may have written it: what it says of samplers and options
 * is checked where they are chosen.
 * @param {string} fragment
 * @returns {Settings | null}
 */
export function readFragment(fragment) {
  if (fragment.length > MAX_FRAGMENT) return null;
  try {
    const found = JSON.parse(decodeURIComponent(fragment.slice(1)));
    const { parts, samplers } = found;
    const hasParts = isList(parts, MAX_PARTS) && parts.every(isPart);
    const hasSamplers = isList(samplers, 2) && samplers.every(isSampler);
    return hasParts && hasSamplers && isRecord(found.shared) ? found : null;
  } catch {
    return null;
  }
}

/**
 * @param {unknown} value
 * @param {number} most
 * @returns {value is any[]}
 */
function isList(value, most) {
  return Array.isArray(value) && value.length >= 1 && value.length <= most;
}

/** @param {unknown} part */
function isPart(part) {
  return typeof part === "string" || (Number.isSafeInteger(part) && Number(part) >= 1);
}

/** @param {any} one */
function isSampler(one) {
  return typeof one?.id === "string" && isRecord(one.options);
}

/** @param {unknown} value */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
