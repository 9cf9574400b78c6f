import { ports, type Scope } from "@portico/core";
import type { Definition } from "./definition.ts";
import type { DefinitionProblem } from "./definition-problem.ts";
import { type DefinitionText, idOfFile, type LoadedDefinition, type LoadingWith, loadDefinition } from "./load-definition.ts";
import { READ_HERE_CHARACTERS } from "./definition-limits.ts";
import { readSource } from "./read-source.ts";

/** The deployed definitions. All answers are synchronous. A returned list is never changed; a later call returns a new list. */
export interface Catalogue {
  /** Sorted by id. */
  list(): readonly Definition[];
  find(id: string): Definition | undefined;
  /** Finds a definition by the name of its document: `support/triage.yaml`. */
  findByPath(name: string): Definition | undefined;
  /** The name of the document that contains the definition with this id. */
  pathOf(id: string): string | undefined;
  /** Documents that cannot be used, sorted by name. */
  broken(): readonly BrokenDefinition[];
  /** Resolves when the current text of this document is shown. */
  reload(name: string): Promise<void>;
}

/** A document that cannot be used, and why. */
export interface BrokenDefinition {
  /** Of the document. */
  readonly name: string;
  /** The id that the document gives itself, or that of its file. */
  readonly id: string;
  readonly problems: readonly DefinitionProblem[];
}

interface CatalogueNeeds {
  /** Does not reject. */
  readonly load: (document: DefinitionText) => LoadedDefinition | Promise<LoadedDefinition>;
  readonly documents: Pick<ports.Documents, "list" | "read" | "watch">;
  readonly log: Pick<ports.Log, "info" | "warn">;
}

const DEFINITION_NAME = /\.(?:ya?ml|json)$/i;

const READ_AT_ONCE = 16;

const PROBLEMS_LOGGED = 3;

/** The loaded state of one document. */
interface Entry {
  /** Undefined if the document could not be read. */
  readonly text: string | undefined;
  readonly loaded: LoadedDefinition;
}

/**
 * Read all definitions among the documents, and follow their changes until the scope closes. A document that cannot be used is reported in
 * the log and in `broken`, and does not affect other definitions. Rejects if the documents cannot be listed.
 */
export async function openCatalogue({ documents, log, load }: CatalogueNeeds, scope: Scope): Promise<Catalogue> {
  const entries = new Map<string, Entry>();
  let shown = NOTHING;
  let isOpen = false;
  let isClosed = false;

  const read = async (name: string): Promise<Entry | undefined> => {
    try {
      const document = await documents.read(name);
      if (!document) return undefined;
      const { text } = document;
      const before = entries.get(name);
      return before?.text === text ? before : { text, loaded: await load({ name, text }) };
    } catch (cause) {
      log.warn("A workflow definition cannot be read", { definition: name }, cause);
      return { text: undefined, loaded: { problems: [wholeFile(`The document ${faultOf(cause)}`)] } };
    }
  };
  const take = (name: string, entry: Entry | undefined): void => {
    if (isClosed || entry === entries.get(name)) return;
    if (entry) entries.set(name, entry);
    else entries.delete(name);
    // If several documents have the same id at the start, their names decide, not the order of reading.
    if (!isOpen) return;
    const before = shown;
    shown = show(entries, before);
    logChanges(before, shown, log, name);
  };
  const follow = eachInTurn(async (name) => take(name, await read(name)));

  // Watching begins before the first read, so that changes during the read are not missed.
  const stop = await documents.watch((name) => {
    if (DEFINITION_NAME.test(name)) void follow(name);
  });
  scope.onClose(async () => {
    isClosed = true;
    await stop();
  });
  const names = (await documents.list()).filter((name) => DEFINITION_NAME.test(name));
  for (let first = 0; first < names.length; first += READ_AT_ONCE) {
    await Promise.all(names.slice(first, first + READ_AT_ONCE).map(follow));
  }
  isOpen = true;
  shown = show(entries, NOTHING);
  logChanges(NOTHING, shown, log);

  return {
    list: () => shown.list,
    find: (id) => shown.byId.get(id)?.definition,
    findByPath: (name) => {
      const definition = entries.get(name)?.loaded.definition;
      return definition && shown.byId.get(definition.id)?.name === name ? definition : undefined;
    },
    pathOf: (id) => shown.byId.get(id)?.name,
    broken: () => shown.broken,
    reload: follow,
  };
}

/** The definitions that a service finds in its documents. */
export interface DeployedDefinitions {
  /** Ids of the definitions that can be used. */
  readonly deployed: readonly string[];
  readonly broken: readonly BrokenDefinition[];
}

/** Read all definitions once, as a service does when it starts. Rejects when the documents cannot be listed. */
export async function readDeployed(
  documents: Pick<ports.Documents, "list" | "read">,
  loading: LoadingWith,
): Promise<DeployedDefinitions> {
  const once = { ...documents, watch: async () => async () => {} };
  const load = (document: { readonly name: string; readonly text: string }) => loadDefinition(document, loading);
  const catalogue = await openCatalogue({ documents: once, load, log: SILENT }, { onClose() {}, onReady() {} });
  return { deployed: catalogue.list().map(({ id }) => id), broken: catalogue.broken() };
}

interface Shown {
  readonly byId: ReadonlyMap<string, { readonly name: string; readonly definition: Definition }>;
  readonly list: readonly Definition[];
  readonly broken: readonly BrokenDefinition[];
}

const NOTHING: Shown = { byId: new Map(), list: [], broken: [] };

/** A document keeps its id: a later file with the same id does not replace the definition of running work. */
function show(entries: ReadonlyMap<string, Entry>, before: Shown): Shown {
  const byId = new Map<string, { name: string; definition: Definition }>();
  const broken: BrokenDefinition[] = [];
  const usable = [...entries].flatMap(([name, { loaded }]) =>
    loaded.definition ? [{ name, definition: loaded.definition }] : [],
  );
  const holds = ({ name, definition }: { name: string; definition: Definition }) => before.byId.get(definition.id)?.name === name;
  const inTurn = usable.sort((one, other) => Number(holds(other)) - Number(holds(one)) || compare(one.name, other.name));
  for (const { name, definition } of inTurn) {
    const holder = byId.get(definition.id);
    if (holder) broken.push({ name, id: definition.id, problems: [sameId(definition, holder.name)] });
    else byId.set(definition.id, { name, definition });
  }
  for (const [name, { loaded }] of entries) {
    if (loaded.problems) broken.push({ name, id: loaded.id ?? idOfFile(name), problems: loaded.problems });
  }
  return {
    byId,
    list: [...byId.values()].map(({ definition }) => definition).sort((one, other) => compare(one.id, other.id)),
    broken: broken.sort((one, other) => compare(one.name, other.name)),
  };
}

function sameId({ id, text }: Definition, holder: string): DefinitionProblem {
  const message = `The definition "${holder}" also has the id "${id}"`;
  const read = text.length <= READ_HERE_CHARACTERS ? readSource(text) : undefined;
  return read && "source" in read ? read.source.problem(["id"], message) : wholeFile(message);
}

function wholeFile(message: string): DefinitionProblem {
  return { line: 1, column: 1, path: "$", message };
}

function logChanges(before: Shown, after: Shown, log: CatalogueNeeds["log"], changed?: string): void {
  const was = new Map(before.broken.map((each) => [each.name, each]));
  for (const { name: broken, problems } of after.broken) {
    // Other documents change only if they share an id with this document.
    const isNew = broken === changed || !was.has(broken);
    if (isNew)
      log.warn("A workflow definition cannot be used", {
        definition: broken,
        problems: problems.length,
        first: inWords(problems),
      });
  }
  const isBroken = new Set(after.broken.map((each) => each.name));
  for (const mended of was.keys()) {
    if (!isBroken.has(mended)) log.info("A workflow definition is usable again", { definition: mended });
  }
}

function inWords(problems: readonly DefinitionProblem[]): string {
  return problems
    .slice(0, PROBLEMS_LOGGED)
    .map(({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`)
    .join("; ");
}

/** Runs once per name at a time. A call during a run causes one more run, so that the newest state is always read. */
function eachInTurn(run: (name: string) => Promise<void>): (name: string) => Promise<void> {
  const running = new Map<string, Promise<void>>();
  const again = new Set<string>();
  const repeat = async (name: string): Promise<void> => {
    try {
      do {
        again.delete(name);
        await run(name);
      } while (again.has(name));
    } finally {
      running.delete(name);
    }
  };
  return (name) => {
    const now = running.get(name);
    if (now) again.add(name);
    const turn = now ?? repeat(name);
    if (!now) running.set(name, turn);
    return turn;
  };
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function faultOf(error: unknown): string {
  return (error instanceof ports.DocumentsUnavailable ? error.fault : undefined) ?? "cannot be read";
}

/** No log here: the caller reports broken definitions. */
const SILENT = { info() {}, warn() {} };
