import assert from "node:assert/strict";
import { test } from "node:test";

import { commandLine, literal, python, quoted } from "../../../../src/uncode/server/page/js/recipe.js";

const ORIGIN = { model: "tiny", revision: null, dtype: "float32", weights: null, guidance: 0, frequency: null };
const CHOSEN = { id: "uncode", title: "uncode", options: { rate: 0.5 }, changed: { rate: 0.5 }, takesTable: true };

function recipe(changes = {}) {
  return {
    origin: ORIGIN, parts: ["Hello"], isChat: false, chosen: CHOSEN, length: 8, seed: 3, stopsAtEos: true,
    constraint: null, row: null,
    ...changes,
  };
}

test("the command line of a preset with options", () => {
  const model = "uncode decode --model tiny --dtype float32";
  assert.equal(commandLine(recipe()), `${model} --sampler uncode --set rate=0.5 --length 8 --seed 3 Hello`);
});

test("a constraint is repeated", () => {
  assert.match(commandLine(recipe({ constraint: { regex: "a b" } })), / --regex 'a b' Hello$/);
  assert.match(commandLine(recipe({ constraint: { choices: ["yes", "no"] } })), / --choice yes --choice no Hello$/);
  assert.match(commandLine(recipe({ constraint: "json" })), /^# .*use the Python/);
  const schema = { json_schema: { enum: [null, true] } };
  assert.match(commandLine(recipe({ constraint: schema })), /^# .*use the Python/);
  const code = python(recipe({ constraint: schema }));
  assert.match(code, /constraint=uncode\.constraint\(json_schema=\{"enum": \[None, True\]\}\)/);
  assert.match(python(recipe({ constraint: "json" })), /constraint=uncode\.constraint\("json"\)/);
});

test("packed weights are repeated", () => {
  const origin = { ...ORIGIN, weights: "int8" };
  assert.match(commandLine(recipe({ origin })), /--dtype float32 --weights int8/);
  assert.match(python(recipe({ origin })), /load\("tiny", dtype="float32", weights="int8"\)/);
});

test("a sampler at its defaults goes by its name", () => {
  const chosen = { ...CHOSEN, changed: {} };
  assert.match(python(recipe({ chosen })), /generate\(denoiser, prompt, sampler="uncode", length=8, seed=3\)/);
});

test("a preset with options, a table and guidance", () => {
  const origin = { ...ORIGIN, guidance: 1.5, frequency: "llada" };
  const text = python(recipe({ origin, stopsAtEos: false }));
  assert.match(text, /^denoiser = uncode\.Guided\(denoiser, 1\.5\)$/m);
  assert.match(text, /^sampler = uncode\.presets\.uncode\(frequency="llada", rate=0\.5\)$/m);
  assert.match(text, /stop_at_eos=False/);
  const line = commandLine(recipe({ origin, stopsAtEos: false }));
  assert.match(line, /--guidance 1\.5 .*--frequency llada .*--whole/);
});

test("a table is named where the sampler takes it", () => {
  const origin = { ...ORIGIN, frequency: "llada" };
  const chosen = { id: "confidence", title: "", options: {}, changed: {}, takesTable: false };
  assert.doesNotMatch(commandLine(recipe({ origin, chosen })), /llada/);
  assert.doesNotMatch(python(recipe({ origin, chosen })), /llada/);
});

test("released code is called by its module", () => {
  const chosen = { ...CHOSEN, id: "legacy.fast_dllm_factor", changed: { factor: 2 }, takesTable: false };
  assert.match(python(recipe({ chosen })), /^sampler = uncode\.legacy\.fast_dllm_factor\(factor=2\)$/m);
});

test("a chat is a message", () => {
  assert.match(commandLine(recipe({ isChat: true })), / --chat Hello$/);
  assert.match(python(recipe({ isChat: true })), /^prompt = \[\{"role": "user", "content": "Hello"\}\]$/m);
});

test("gaps are markers for the library, and have no length", () => {
  const gapped = recipe({ parts: ["Paris is the ", 2, " of France."], length: null });
  assert.match(commandLine(gapped), /--seed 3 'Paris is the <mask:2> of France\.'$/);
  assert.match(python(gapped), /^prompt = "Paris is the <mask:2> of France\."$/m);
  assert.doesNotMatch(python(gapped), /length/);
});

test("a marker that is text is repeated from ids", () => {
  const row = { prompt_ids: [7, 8], canvas_ids: [0, 0], sampler: { policy: {} } };
  const typed = recipe({ parts: ["what is <mask:2>?"], row });
  assert.match(commandLine(typed), /^# /);
  assert.match(python(typed), /Canvas\.infill\(\[\[7, 8, 0, 0\]\], mask_id=denoiser\.mask_id\)/);
  assert.match(python(typed), /Sampler\.from_dict\(\{"policy": \{\}\}, frequency=denoiser\.frequency\)/);
});

test("words of a shell", () => {
  assert.equal(quoted("rate=0.5"), "rate=0.5");
  assert.equal(quoted("it's $HOME"), "'it'\\''s $HOME'");
  assert.match(commandLine(recipe({ parts: ["-x"] })), / -- -x$/);
  assert.equal(quoted(""), "''");
});

test("values of Python", () => {
  assert.equal(literal([null, true, 0.5, 'a"\\\n', { b: [] }]), '[None, True, 0.5, "a\\"\\\\\\n", {"b": []}]');
  assert.equal(literal("\u202e"), '"\\u202e"');
});
