import { basename } from "node:path";
import type { ports } from "@portico/core";
import type { Definition } from "@portico/plugins/workflow-service/definitions";
import { CommandFailed, EXIT } from "../../exit-codes.ts";
import { DEFAULT_PRESET } from "../../preset-table.ts";
import { readSettings } from "../../read-settings.ts";
import type { SettingsFlags } from "../../settings-flags.ts";
import { readNodeRules } from "../node-rules.ts";
import { readDefinitionFile } from "../read-definition-file.ts";
import { type CaseFile, readCaseFile } from "./case-file.ts";
import { type CaseResult, runCase } from "./run-case.ts";
import { EXECUTED, idWithoutPlaces } from "./scripted-nodes.ts";

/** The results of one file of cases. */
export interface FileResult {
  readonly file: string;
  readonly cases: readonly CaseResult[];
}

/**
 * Run the cases of these files one after another. Calls nothing outside the process. Throws CommandFailed: 66 if a file cannot be read, 1 if a
 * file is invalid.
 */
export async function testDefinitions(flags: SettingsFlags, files: readonly string[]): Promise<readonly FileResult[]> {
  const { settings } = await readSettings(flags);
  const { types: known, secretNames } = await readNodeRules({ settings, preset: DEFAULT_PRESET });
  // A case has its own agents, providers and workflows.
  const types = new Map([...known].map(([type, rules]) => [type, withoutInstance(rules)]));
  const results: FileResult[] = [];
  for (const file of files) {
    const cases = await readCaseFile(file);
    const secrets = { ...Object.fromEntries(secretNames.map((name) => [name, `secret ${name}`])), ...cases.secrets };
    const definition = await readDefinitionFile(cases.definition, { types, secretNames: Object.keys(secrets) });
    refuseUnknownIds(cases, definition);
    const given = { definition, document: basename(cases.definition), types, secrets };
    const done: CaseResult[] = [];
    for (const test of cases.cases) done.push(await runCase(test, given));
    results.push({ file, cases: done });
  }
  return results;
}

const GATE = "human_gate";

/** The rules without checks that depend on the instance, such as its providers. */
function withoutInstance(rules: ports.NodeRules): ports.NodeRules {
  // Of a gate, the checks of its notification and its links depend on the instance.
  return EXECUTED.has(rules.type) && rules.type !== GATE ? rules : { ...rules, check: () => [] };
}

/** A case that answers for a node which the definition does not have, or which is executed, tests something else than it says. */
function refuseUnknownIds({ file, cases }: CaseFile, { graph, onFailure }: Definition): void {
  const nodes = new Map(typesOf(graph));
  if (onFailure) for (const [id, type] of typesOf({ nodes: new Map([[onFailure.id, onFailure]]) })) nodes.set(id, type);
  for (const { name, nodes: answers, gates, expect } of cases) {
    const refuse = (id: string, reason: string): never => {
      throw new CommandFailed(`${file}: case "${name}": ${id}: ${reason}`, EXIT.failed);
    };
    for (const id of [...Object.keys(answers), ...Object.keys(gates), ...Object.keys(expect.nodes)]) {
      if (!nodes.has(idWithoutPlaces(id))) refuse(id, "The definition has no such node");
    }
    for (const id of Object.keys(answers)) {
      const type = nodes.get(idWithoutPlaces(id))!;
      // The answer of a gate is that of its notification.
      if (EXECUTED.has(type) && type !== GATE) refuse(id, `Nodes of type ${type} are executed: they take no answer`);
    }
    for (const id of Object.keys(gates)) {
      if (nodes.get(idWithoutPlaces(id)) !== GATE) refuse(id, "This node is not a human_gate");
    }
  }
}

function typesOf({ nodes }: Definition["graph"], prefix = ""): ReadonlyMap<string, string> {
  const types = new Map<string, string>();
  for (const { id, rules, with: values } of nodes.values()) {
    types.set(`${prefix}${id}`, rules.type);
    for (const value of Object.values(values)) {
      if (value.kind !== "graph") continue;
      for (const [inner, type] of typesOf(value.graph, `${prefix}${id}.`)) types.set(inner, type);
    }
  }
  return types;
}
