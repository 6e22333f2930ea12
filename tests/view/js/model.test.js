/** The model of a trace, and texts. No browser is needed. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Colouring } from "../../../src/uncode/view/js/colour.js";
import { divergenceText } from "../../../src/uncode/view/js/key.js";
import { firstDivergence, TraceModel } from "../../../src/uncode/view/js/model.js";
import { follow, jsonLines } from "../../../src/uncode/view/js/stream.js";
import { isTrivial, number, probability, quoted, tokenText, visible } from "../../../src/uncode/view/js/text.js";

/** Three offsets: the first given, two written; the last offset is written, erased and written again. */
const ROW = {
  generated_ids: [5, 6, 7, 1],
  generated_texts: ["a", " the", "😀c", ""],
  commit_step: [-1, 0, 2, -2],
  forwards: 3,
  special_ids: [0, 1],
  mask_id: 0,
  logp: [null, -0.1, -2, null],
  entropy: [null, 0.2, 1.5, null],
  score: [null, -1, -3, null],
  terms: { Confidence: [null, -0.1, -2, null] },
  runner_up: [null, 2, null, null],
  mean_entropy: [1, 0.5, null],
  events: [[0, 1, 6], [0, 2, 9], [1, 2, -1], [2, 2, 7]],
  event_texts: [" the", "x", "", "c"],
  answer_span: [5, 7],
};

function textsAt(model, time) {
  const cells = model.start.slice();
  for (const [offset, cell] of model.changes(0, time)) cells[offset] = cell;
  return cells.map((cell) => `${cell.kind} ${cell.text}`.trim());
}

test("a row is replayed forward and back", () => {
  const model = TraceModel.fromRow(ROW);
  assert.deepEqual(textsAt(model, 0), ["given a", "masked", "masked", "masked"]);
  assert.deepEqual(textsAt(model, 1), ["given a", "written  the", "written x", "masked"]);
  assert.deepEqual(textsAt(model, 2), ["given a", "written  the", "erased x", "masked"]);
  assert.deepEqual(textsAt(model, 3), ["given a", "written  the", "written 😀c", "filled"]);
  for (let from = 0; from <= 3; from += 1) {
    for (let to = 0; to <= 3; to += 1) {
      const there = model.changes(from, to);
      const cells = model.start.slice();
      for (const [offset, cell] of model.changes(0, from)) cells[offset] = cell;
      for (const [offset, cell] of there) cells[offset] = cell;
      assert.deepEqual(cells.map((cell) => `${cell.kind} ${cell.text}`.trim()), textsAt(model, to), `${from} to ${to}`);
    }
  }
});

test("probes are forwards and no steps", () => {
  const model = TraceModel.fromRow({ ...ROW, forwards: 10, probes: [4, 3, 0] });
  assert.equal(model.forwards, 3);
  assert.deepEqual(textsAt(model, 3), textsAt(TraceModel.fromRow(ROW), 3));
});

test("counts, beliefs, answer and EOS of a row", () => {
  const model = TraceModel.fromRow(ROW);
  assert.deepEqual(model.counts.map(({ written, trivial }) => [written, trivial]), [[0, 0], [2, 1], [1, 1], [2, 1]]);
  assert.equal(model.cells[1].belief?.terms?.Confidence, -0.1);
  assert.deepEqual(Array.from(model.answer), [2], "characters are code points: the face is one");
  assert.ok(model.cells[3].isEos && model.cells[3].kind === "filled");
  assert.deepEqual(model.stepsOf([1, 2]), [0, 2]);
});

test("a write that was erased has no belief", () => {
  const model = TraceModel.fromRow(ROW);
  assert.equal(model.changes(0, 1).get(2)?.belief, null);
  assert.equal(new Colouring("entropy", [model]).shade(model.changes(0, 1).get(2), model), -1);
});

test("drafts are texts, whole or as changes", () => {
  const drafts = [[5, 6, 9, -1], [5, 6, 7, -1], [5, 6, 7, 1]];
  const changes = [[0, 5, 1, 6, 2, 9], [2, 7], [3, 1]];
  const whole = TraceModel.fromRow({ ...ROW, drafts, draft_texts: { 9: "x" } });
  const small = TraceModel.fromRow({ ...ROW, draft_changes: changes, draft_texts: { 9: "x" } });
  assert.deepEqual(whole.drafts[0], ["a", " the", "x", ""]);
  assert.deepEqual(small.drafts, whole.drafts);
});

test("a stream of steps gives the model of the finished row", async () => {
  const row = { ...ROW, events: undefined, event_texts: undefined };
  const finished = TraceModel.fromRow(row);
  const model = new TraceModel({ length: 4, eosIds: [1], given: [{ offset: 0, token: 5, text: "a" }] });
  async function* parts() {
    yield '{"commits":[{"offset":1,"token":6,"text":" the","logp":-0.1}]}\n{"comm';
    yield 'its":[]}\n{"commits":[{"offset":2,"token":7,"text":"😀c","logp":-2}],';
    yield '"filled":[{"offset":3,"token":1,"text":""}]}';
  }
  await follow(model, jsonLines(parts()));
  assert.equal(model.state, "finished");
  assert.deepEqual(textsAt(model, 3), textsAt(finished, 3));
  assert.deepEqual(model.counts, finished.counts);
});

test("a decode that runs starts empty, and ends in one of three ways", async () => {
  const model = new TraceModel({ length: 2, prompt: "p" });
  assert.deepEqual([model.state, model.forwards, ...textsAt(model, 0)], ["running", 0, "masked", "masked"]);
  model.append({ commits: [{ offset: 1, token: 3, text: "x" }], erased: [1] });
  assert.deepEqual(textsAt(model, 1), ["masked", "erased x"]);
  model.cancel();
  assert.deepEqual([model.state, model.isFinished, firstDivergence([model, model])], ["cancelled", false, null]);
  assert.throws(() => model.append({ commits: [] }), /the trace is cancelled: make a new one/);

  /** @param {Error} error */
  async function* broken(error) {
    yield { commits: [{ offset: 0, token: 3, text: "x" }] };
    throw error;
  }
  const failed = new TraceModel({ length: 2 });
  await follow(failed, broken(new Error("the server is gone")));
  assert.deepEqual([failed.state, failed.error, failed.forwards], ["failed", "the server is gone", 1]);
  const aborted = new TraceModel({ length: 2 });
  await follow(aborted, broken(new DOMException("stopped", "AbortError")));
  assert.equal(aborted.state, "cancelled");
});

test("a step that does not fit changes nothing", async () => {
  const model = new TraceModel({ length: 2 });
  const outside = { commits: [{ offset: 0, token: 3, text: "a" }, { offset: 2, token: 3, text: "b" }] };
  assert.throws(() => model.append(outside), /there is no offset 2: the canvas has 2 tokens/);
  assert.deepEqual([model.forwards, ...textsAt(model, 0)], [0, "masked", "masked"]);
  model.finish([{ offset: 0, token: 1, text: "" }]);
  assert.deepEqual(textsAt(model, 1), ["filled", "masked"], "a stop rule before the first forward");
});

test("traces with the same token are named together", () => {
  const titles = ["a", "b", "c", "d", "e"];
  const models = titles.map((title, at) =>
    TraceModel.fromRow({ ...ROW, title, generated_texts: ["a", at < 4 ? " the" : " an", "c", ""] }),
  );
  const text = "First difference at offset 1: a, b and 2 more have “␣the”, e has “␣an” (step 0).";
  assert.equal(divergenceText(models, 1), text);
});

test("shades", () => {
  const model = TraceModel.fromRow(ROW);
  const shades = (name) => [1, 2].map((at) => new Colouring(name, [model]).shade(model.cells[at], model));
  assert.deepEqual(shades("time"), [0, 4]); // of three writes
  assert.deepEqual(shades("confidence"), [2, 6]);
  assert.deepEqual(shades("entropy"), [3, 5]);
  assert.deepEqual(shades("trivial"), [1, 4]);
  const [high, low] = shades("score");
  assert.ok(high > low);
});

test("the first divergence", () => {
  const other = { ...ROW, generated_texts: ["a", " the", "d", ""] };
  assert.equal(firstDivergence([TraceModel.fromRow(ROW), TraceModel.fromRow(other)]), 2);
  assert.equal(firstDivergence([TraceModel.fromRow(ROW), TraceModel.fromRow(ROW)]), null);
  assert.equal(firstDivergence([TraceModel.fromRow(ROW)]), null);
});

test("texts show what is hidden", () => {
  assert.equal(visible("a\u202eb\u0000\u2066\ud800😀\n"), "a\\u202eb\\u0000\\u2066\\ud800😀\n");
  assert.deepEqual(tokenText("  if\n", false), { blanks: "  ", word: "if↵", breaks: "\n" });
  assert.equal(tokenText("   ", false).word, "␣␣␣");
  assert.equal(tokenText("", false).word, "·");
  assert.equal(tokenText("<|eos|>", true).word, "∎");
  assert.equal(quoted(" a\t"), "“␣a⇥”");
  assert.ok(isTrivial(" the") && isTrivial("\n") && isTrivial(".") && !isTrivial("them") && !isTrivial("  "));
  assert.deepEqual([number(-0.5), number(0), number(null), number(1e-7)], ["−0.5", "0", "–", "1.0e−7"]);
  assert.deepEqual([probability(-1e-5), probability(0), probability(null)], ["> 0.999", "1", "–"]);
});
