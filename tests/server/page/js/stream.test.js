import assert from "node:assert/strict";
import { test } from "node:test";

import { serverSent } from "../../../../src/uncode/server/page/js/api.js";
import { DecodeRun, stepsOf } from "../../../../src/uncode/server/page/js/decode_run.js";

async function* parts(...texts) {
  yield* texts;
}

async function all(source) {
  const found = [];
  for await (const one of source) found.push(one);
  return found;
}

test("events that come in pieces", async () => {
  const texts = ['data: {"a"', ":1}\n", "\n: still here\n\ndata: [DO", "NE]\n\n", "data: half"];
  const found = await all(serverSent(parts(...texts)));
  assert.deepEqual(found, ['{"a":1}', "[DONE]"]);
});

test("commits and erasures of a forward", () => {
  const found = stepsOf([
    { step: 4, offset: 0, token: 7, text: "a", logp: -1, entropy: 2 },
    { step: 4, offset: 1, token: null, text: "", logp: null, entropy: null },
  ], 1.5);
  const commit = { offset: 0, token: 7, text: "a", logp: -1, entropy: 2 };
  assert.deepEqual(found, [{ step: 4, commits: [commit], erased: [1], mean_entropy: 1.5 }]);
});

test("a forward that changed nothing counts as a step", async () => {
  const chunks = [
    { choices: [{ text: "", canvas: { length: 2, given: [], eos_ids: [] } }] },
    { choices: [{ text: "a", commits: [{ step: 2, offset: 0, token: 7, text: "a", logp: -1 }] }] },
    { choices: [{ text: "", trace: { forwards: 3 } }] },
    { choices: [], usage: {} },
  ];
  const run = new DecodeRun({ stream: () => parts(...chunks) }, "v1/completions", {});
  assert.equal((await run.open()).length, 2);
  const steps = await all(run.steps());
  assert.deepEqual(steps.map(({ commits }) => commits.length), [0, 0, 1]);
  assert.deepEqual([run.text, run.row.forwards], ["a", 3]);
});

test("an error before the first step is kept", async () => {
  const failing = { next: () => Promise.reject(new Error("no sampler is named 'x'")) };
  const run = new DecodeRun({ stream: () => failing }, "v1/completions", {});
  await assert.rejects(run.open(), /no sampler/);
  assert.match(run.error.message, /no sampler/);
});
