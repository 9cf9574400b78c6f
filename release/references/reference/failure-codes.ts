import { globSync, readFileSync } from "node:fs";
import { code, table } from "./table.ts";

const root = new URL("../../../", import.meta.url);

/** The codes with which workflow runs, their nodes and turns fail, as sources throw them, with the sentences that say why. */
export function failureCodes(): string {
  const all = sourcesOf("{adapters,adapters/workflow-nodes,plugins}/src/**/*.ts");
  const named = new Map(
    all.flatMap((text) =>
      [...text.matchAll(/\bconst ([A-Z_]+) = ("[a-z_]+");/g)].map(([, name = "", value = ""]) => [name, value]),
    ),
  );
  const ofNodes = all
    .filter((text) => text.includes("NodeFailed("))
    .map((text) => text.replaceAll(/(?<=\bNodeFailed\(\s*)[A-Z_]+(?=,)/g, (name) => named.get(name) ?? name));
  const ofRuns = sourcesOf("plugins/src/workflow-service/{kinds,runner,service}/*.ts");
  const ofTurns = sourcesOf("plugins/src/conversations-runs/{asked,execution}/*.ts");
  return [
    "## Failed workflow runs and nodes",
    "A run that fails with a node has the node's code. `…` stands for a value. A code without a sentence has one of the service that the node called.",
    tableOf([...ofNodes.flatMap(nodeCodes), ...ofRuns.flatMap(writtenCodes)]),
    "## Failed turns",
    tableOf(ofTurns.flatMap((text) => [...failuresIn(text, "TurnFailed"), ...writtenCodes(text)])),
  ].join("\n\n");
}

type Failure = readonly [code: string, sentence: string];

const CODE = '"([a-z]+(?:_[a-z]+)*)"';
const SENTENCE = '(?:(`[^`]*`|"[^"]*"))?';

function nodeCodes(text: string): Failure[] {
  // Nodes with a sandbox have one table of failures, whose codes begin with the name of the kind.
  if (text.includes("`${code}_${kind}`"))
    return failuresIn(text, "fail").flatMap(([kind, sentence]) => [
      [`code_${kind}`, sentence] as const,
      [`transform_${kind}`, sentence] as const,
    ]);
  return [...failuresIn(text, "NodeFailed"), ...failuresIn(text, "fail(?:ed)?")];
}

/** Calls such as `failed("file_not_found", "The run has no such file")`. */
function failuresIn(text: string, name: string): Failure[] {
  const found = text.matchAll(new RegExp(`\\b${name}\\(\\s*${CODE},\\s*${SENTENCE}`, "g"));
  return [...found].map(([, each = "", sentence = ""]) => [each, inWords(sentence)]);
}

/** Values such as `{ code: "lost", message: "The engine no longer knows the run" }`. */
function writtenCodes(text: string): Failure[] {
  const found = text.matchAll(new RegExp(`\\bcode: ${CODE}, message(?:: ${SENTENCE})?`, "g"));
  return [...found].map(([, each = "", sentence = ""]) => [each, inWords(sentence)]);
}

/** The sentence of a literal, with `…` for its values. */
function inWords(literal: string): string {
  return literal.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "…");
}

function tableOf(failures: readonly Failure[]): string {
  const sentences = new Map<string, Set<string>>();
  for (const [each, sentence] of failures) {
    const known = sentences.get(each) ?? new Set();
    if (sentence !== "") known.add(sentence);
    sentences.set(each, known);
  }
  const rows = [...sentences].toSorted(([one], [other]) => one.localeCompare(other));
  return table(
    ["Code", "Sentences"],
    rows.map(([each, known]) => [code(each), [...known].join("; ")]),
  );
}

function sourcesOf(pattern: string): string[] {
  const files = globSync(pattern, { cwd: root, exclude: (name) => name === "node_modules" });
  return files.toSorted().map((file) => readFileSync(new URL(file, root), "utf8"));
}
