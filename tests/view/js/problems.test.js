/** Search, filters and order of the list of problems. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { defaultChoice } from "../../../src/uncode/view/js/choice.js";
import { matches, samplerPair, sorted } from "../../../src/uncode/view/js/problems.js";

const trace = (sampler, right, forwards, length) => ({ sampler, right, forwards, length });
const PROBLEMS = [
  {
    label: "story 1",
    task: "story",
    prompt: "Ada has coins",
    traces: [trace("confidence", false, 96, 50), trace("uncode 0.1", true, 57, 53)],
  },
  {
    label: "sudoku 1",
    task: "sudoku",
    prompt: "1 2 3",
    traces: [trace("confidence", true, 16, 16), trace("uncode 0.1", true, 16, 16)],
  },
  {
    label: "story 2",
    task: "story",
    prompt: "Sam buys eggs",
    traces: [trace("confidence", false, 96, 80), trace("uncode 0.1", false, 60, 40)],
  },
];
const ANY = { words: "", task: "", rightIn: [], wrongIn: [] };
const found = (query) => PROBLEMS.filter((problem) => matches(problem, { ...ANY, ...query })).map((each) => each.label);

test("words are searched in names, prompts and samplers", () => {
  assert.deepEqual(found({}), ["story 1", "sudoku 1", "story 2"]);
  assert.deepEqual(found({ words: "EGGS sam" }), ["story 2"]);
  assert.deepEqual(found({ words: "story uncode" }), ["story 1", "story 2"]);
  assert.deepEqual(found({ words: "nothing" }), []);
});

test("filters by task and verdict", () => {
  assert.deepEqual(found({ task: "sudoku" }), ["sudoku 1"]);
  assert.deepEqual(samplerPair(PROBLEMS), ["confidence", "uncode 0.1"]);
  assert.deepEqual(found({ wrongIn: ["confidence"], rightIn: ["uncode 0.1"] }), ["story 1"]);
  assert.equal(samplerPair([{ ...PROBLEMS[0], traces: [trace("a", true, 1, 1), trace("b", null, 1, 1)] }]), null);
});

test("orders keep equal problems in their order", () => {
  assert.deepEqual(sorted(PROBLEMS, "given"), [0, 1, 2]);
  assert.deepEqual(sorted(PROBLEMS, "task"), [0, 2, 1]);
  assert.deepEqual(sorted(PROBLEMS, "right"), [2, 0, 1]);
  assert.deepEqual(sorted(PROBLEMS, "forwards"), [0, 2, 1]);
  assert.deepEqual(sorted(PROBLEMS, "length"), [2, 0, 1]);
});

test("of many samplers, one that is wrong and one that is right are shown first", () => {
  const names = ["uniform", "confidence", "entropy", "uncode 0", "uncode 0.1"];
  /** @param {(boolean | null)[]} verdicts */
  const shown = (verdicts) => defaultChoice(verdicts.map((right, at) => trace(names[at], right, 9, 9)));
  assert.deepEqual(shown([true, false, true, true, false]), [1, 3], "confidence and Uncode, if their verdicts fit");
  assert.deepEqual(shown([true, true, false, false, true]), [0, 2], "else the first of each verdict");
  assert.deepEqual(shown([true, true, true, true, true]), [1, 3]);
  assert.deepEqual(shown([null, null, null, null, null]), [1, 3]);
  assert.deepEqual(shown([false, false, true, true]), [0, 1, 2, 3], "few samplers are all shown");
});
