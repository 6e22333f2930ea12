import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      complexity: ["error", 16],
      eqeqeq: ["error", "always", { null: "ignore" }],
      "max-len": ["error", 120],
      "max-lines": ["error", 400],
      "max-lines-per-function": ["error", 45],
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "write"].map((property) => ({
          property,
          message: "Texts of a model enter the page as text nodes only: use el().",
        })),
      ],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["tests/**"], languageOptions: { globals: globals.node }, rules: { "max-lines-per-function": "off" } },
];
