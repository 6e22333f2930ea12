import assert from "node:assert/strict";
import { test } from "node:test";

import { fragmentOf, readFragment } from "../../../../src/uncode/server/page/js/link.js";

const SETTINGS = {
  parts: ["a % # & <b> \u202e \ud800 ü", 3, ""],
  shared: { length: 9, seed: -1 },
  samplers: [{ id: "uncode", options: { rate: 0.5, steps: null } }],
};

function fragment(value) {
  return `#${encodeURIComponent(JSON.stringify(value))}`;
}

test("what is written is read", () => {
  assert.match(fragmentOf(SETTINGS), /^#[\w%.!~*'()-]+$/);
  assert.deepEqual(readFragment(fragmentOf(SETTINGS)), SETTINGS);
});

test("a fragment is bounded", () => {
  const long = { ...SETTINGS, parts: ["x".repeat(70000)] };
  assert.equal(fragmentOf(long), "");
  assert.equal(readFragment(fragment(long)), null);
  assert.equal(readFragment(fragment({ ...SETTINGS, parts: Array(201).fill(1) })), null);
});

test("a fragment of someone else is no settings", () => {
  const wrong = [
    { parts: [] }, { parts: "x" }, { parts: [0] }, { parts: [1.5] }, { parts: [{}] }, { parts: [null] },
    { samplers: [] }, { samplers: [null] }, { samplers: [{ id: 3, options: {} }] }, { samplers: [{ id: "a" }] },
    { samplers: Array(3).fill({ id: "a", options: {} }) }, { shared: null }, { shared: [] },
  ];
  for (const change of wrong) assert.equal(readFragment(fragment({ ...SETTINGS, ...change })), null);
  for (const text of ["", "#", "#details", "#%", "#null", "#[]", "#{}", "#%7B"]) assert.equal(readFragment(text), null);
});
