/** Colours of tokens: a value becomes one of seven shades, which the style sheet defines for both themes. */

/** @typedef {import("./model.js").Cell} Cell */
/** @typedef {import("./model.js").TraceModel} TraceModel */
/** @typedef {"time" | "confidence" | "entropy" | "score" | "trivial"} ColourName */
/** @typedef {{ shade: number, label: string }} LegendEntry */

export const SHADES = 7;
export const NO_SHADE = -1;
const TRIVIAL_SHADE = 1;
const WORD_SHADE = 4;

/** Probabilities, high first: most tokens are committed near 1, so the steps are finer there. */
const PROBABILITIES = [0.999, 0.99, 0.9, 0.7, 0.5, 0.3];
/** Entropies in nats. */
const ENTROPIES = [0.01, 0.05, 0.2, 0.5, 1, 2];

/** @type {Record<ColourName, string>} */
export const COLOURS = {
  time: "commit time",
  confidence: "confidence",
  entropy: "entropy",
  score: "score",
  trivial: "triviality",
};

/** Shades the cells of one or more traces by one value. */
export class Colouring {
  /**
   * @param {ColourName} name
   * @param {TraceModel[]} models share one scale
   */
  constructor(name, models) {
    this.name = name;
    this.scores = name === "score" ? quantiles(models) : [];
  }

  /**
   * The shade of a written token, 0 to 6; `NO_SHADE` if the value was not recorded.
   * @param {Cell} cell
   * @param {TraceModel} model
   */
  shade(cell, model) {
    if (cell.kind !== "written") return NO_SHADE;
    if (this.name === "time") return Math.min(SHADES - 1, Math.floor(SHADES * model.commitTime(cell)));
    if (this.name === "trivial") return cell.isTrivial ? TRIVIAL_SHADE : WORD_SHADE;
    return this.shadeOfBelief(cell);
  }

  /** @param {Cell} cell */
  shadeOfBelief(cell) {
    const { logp, entropy, score } = cell.belief ?? {};
    const value = { confidence: logp, entropy, score, time: null, trivial: null }[this.name];
    if (!isNumber(value)) return NO_SHADE;
    if (this.name === "confidence") return count(PROBABILITIES, (edge) => Math.exp(value) < edge);
    return count(this.name === "entropy" ? ENTROPIES : this.scores, (edge) => value >= edge);
  }

  /** @returns {LegendEntry[]} */
  legend() {
    if (this.name === "trivial") {
      return [{ shade: TRIVIAL_SHADE, label: "trivial" }, { shade: WORD_SHADE, label: "other" }];
    }
    const ends = {
      time: ["early", "late"],
      confidence: ["p ≥ 0.999", "p < 0.3"],
      entropy: ["< 0.01 nats", "≥ 2 nats"],
      score: ["low", "high"],
    }[this.name];
    return Array.from({ length: SHADES }, (_, shade) => ({
      shade,
      label: shade === 0 ? ends[0] : shade === SHADES - 1 ? ends[1] : "",
    }));
  }
}

/**
 * @param {number | null | undefined} value
 * @returns {value is number}
 */
function isNumber(value) {
  return typeof value === "number";
}

/**
 * @param {number[]} edges
 * @param {(edge: number) => boolean} test
 */
function count(edges, test) {
  return edges.filter(test).length;
}

/**
 * Scores that divide those of all traces into seven equal parts.
 * @param {TraceModel[]} models
 */
function quantiles(models) {
  const scores = models.flatMap((model) => model.cells.map((cell) => cell.belief?.score)).filter(isNumber);
  scores.sort((a, b) => a - b);
  if (!scores.length) return [];
  return Array.from({ length: SHADES - 1 }, (_, at) => scores[Math.floor(((at + 1) * scores.length) / SHADES)]);
}
