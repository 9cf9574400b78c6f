import { createHash } from "node:crypto";
import { nearestWord, type ports, type Scope } from "@portico/core";
import { DEFINITION_BYTES } from "./definition-limits.ts";
import type { DefinitionProblem } from "./definition-problem.ts";
import type { Definition } from "./definition.ts";
import { lintDefinition } from "./lint-definition.ts";
import { idOfFile } from "./load-definition.ts";
import type { Catalogue } from "./open-catalogue.ts";
import type { ReadDefinition } from "./read-definitions.ts";
import { CHECKS, LINT_CHARACTERS } from "../contracts/limits.ts";

const ID_LINE = /^(?:\{\s*)?["']?id["']?\s*:\s*["']?([A-Za-z0-9_-]+)/m;

type Types = ReadonlyMap<string, ports.NodeRules>;

/** A definition's document. */
export interface DefinitionFile {
  readonly name: string;
  readonly text: string;
  /** A strong entity tag: it changes with every byte of the text. */
  readonly etag: string;
  /** Of the store. */
  readonly version: string;
}

export interface CheckedDefinition {
  /** Absent if the text has errors. */
  readonly definition?: Definition | undefined;
  readonly problems: readonly (DefinitionProblem & { readonly severity: "error" | "warning" })[];
}

/** Reads, checks and writes definitions. Functions throw DocumentsUnavailable. */
export interface DefinitionEditor {
  /** False without the setting, and if the store takes no writes. */
  readonly isEditable: boolean;
  readonly types: Types;
  readonly secretNames: Iterable<string>;
  /**
   * The document of a workflow, also one with problems. Undefined for an unknown workflow. Throws NameTaken if the document that the workflow
   * would have contains another workflow.
   */
  find(workflowId: string): Promise<DefinitionFile | undefined>;
  /** Throws ChecksBusy, and the signal's reason. */
  check(workflowId: string, text: string, signal: AbortSignal): Promise<CheckedDefinition>;
  /**
   * Writes the text of a workflow. `before` is the document that the author has read, or undefined for a new workflow. Throws
   * DocumentConflict if another process has written meanwhile. When it resolves, this process uses the new text.
   */
  write(workflowId: string, text: string, before: DefinitionFile | undefined): Promise<DefinitionFile>;
}

/** Thrown if a document with a workflow's name contains another workflow. */
export class NameTaken extends Error {
  override readonly name = "NameTaken";
}

/** Thrown if too many texts wait to be checked. */
export class ChecksBusy extends Error {
  override readonly name = "ChecksBusy";
}

export function createDefinitionEditor(
  {
    catalogue,
    documents,
    types,
    secretNames,
    isEditable,
    loadWith,
  }: {
    readonly catalogue: Catalogue;
    readonly documents: ports.Documents;
    readonly types: Types;
    readonly secretNames: Iterable<string>;
    readonly isEditable: boolean;
    readonly loadWith: (types: Types, scope: Scope) => ReadDefinition;
  },
  scope: Scope,
): DefinitionEditor {
  const load = loadWith(withWorkflows(types, catalogue), scope);
  const turns = createTurns();

  const nameOf = (workflowId: string): string =>
    catalogue.pathOf(workflowId) ??
    catalogue.broken().find(({ id }) => id === workflowId)?.name ??
    // Another process may have created it a moment ago.
    `${workflowId}.yaml`;

  /** Whose document it is. The text decides, because the catalogue may know an earlier one. */
  const ownerOf = async (document: ports.Document): Promise<string> => {
    const { name, text } = document;
    const known = catalogue.findByPath(name);
    if (known?.text === text) return known.id;
    const { definition, id } = await load(document);
    return definition?.id ?? id ?? idInText(text) ?? idOfFile(name);
  };

  return {
    ...{ types, secretNames },
    isEditable: isEditable && documents.isReadOnly !== true,
    async find(workflowId) {
      const document = await documents.read(nameOf(workflowId));
      if (!document) return undefined;
      if ((await ownerOf(document)) !== workflowId) throw new NameTaken("The document contains another workflow");
      return toFile(document);
    },
    async check(workflowId, text, signal) {
      // Longer than its limit in characters is longer in bytes, too.
      if (text.length > DEFINITION_BYTES) return { problems: [atStart(`A definition has at most ${DEFINITION_BYTES} bytes`)] };
      return turns(signal, async () => {
        const { definition, problems } = await load({ name: nameOf(workflowId), text });
        if (!definition) return { problems: (problems ?? []).map((problem) => ({ ...problem, severity: "error" as const })) };
        if (definition.id !== workflowId) return { problems: [otherId(workflowId, definition.id)] };
        const warnings = text.length > LINT_CHARACTERS ? [] : lintDefinition(definition, types);
        return { definition, problems: warnings.map((problem) => ({ ...problem, severity: "warning" as const })) };
      });
    },
    async write(workflowId, text, before) {
      const name = before?.name ?? `${workflowId}.yaml`;
      const written = await documents.write(name, text, before?.version ?? "absent");
      await catalogue.reload(name);
      return toFile(written);
    },
  };
}

function toFile({ name, text, version }: ports.Document): DefinitionFile {
  return { name, text, version, etag: `"${createHash("sha256").update(text).digest("base64url")}"` };
}

/** The id in a text that is not readable as YAML. */
function idInText(text: string): string | undefined {
  return ID_LINE.exec(text)?.[1];
}

function otherId(workflowId: string, found: string) {
  const message = `The id must be "${workflowId}", as in the address, and not "${found}"`;
  return { ...atStart(message), path: "$.id" };
}

function atStart(message: string) {
  return { line: 1, column: 1, path: "$", message, severity: "error" as const };
}

/** The rules, and the rule that a workflow which a node names is deployed, as `portico workflow check` has it. */
function withWorkflows(types: Types, catalogue: Catalogue): Types {
  const rules = types.get("workflow");
  if (!rules) return types;
  const check: ports.NodeRules["check"] = (written) => {
    const own = rules.check?.(written) ?? [];
    const { workflow } = written;
    if (own.length > 0 || typeof workflow !== "string" || workflow.includes("${{") || catalogue.find(workflow)) return own;
    if (catalogue.broken().some(({ id }) => id === workflow)) return own;
    const nearest = nearestWord(
      workflow,
      catalogue.list().map(({ id }) => id),
    );
    const hint = nearest === undefined ? "" : `: did you mean "${nearest}"?`;
    return [{ path: ["workflow"], message: `There is no workflow "${workflow}"${hint}` }];
  };
  return new Map([...types, ["workflow", { ...rules, check }]]);
}

/** A few at a time, in their order. Throws ChecksBusy where too many wait, and the signal's reason: then the place of the wait is free. */
function createTurns(): <T>(signal: AbortSignal, run: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting = new Set<() => void>();
  /** Resolves when the turn is handed over: `running` stays the same. */
  const turn = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const leave = () => {
        waiting.delete(begin);
        reject(signal.reason);
      };
      const begin = () => {
        waiting.delete(begin);
        signal.removeEventListener("abort", leave);
        resolve();
      };
      waiting.add(begin);
      signal.addEventListener("abort", leave, { once: true });
    });
  return async (signal, run) => {
    signal.throwIfAborted();
    if (running >= CHECKS.atOnce) {
      if (waiting.size >= CHECKS.waiting) throw new ChecksBusy("Too many definitions are being checked");
      await turn(signal);
    } else running++;
    try {
      signal.throwIfAborted();
      return await run();
    } finally {
      const [next] = waiting;
      if (next) next();
      else running--;
    }
  };
}
