import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CopiedDocuments, copyDocuments } from "@portico/adapters/documents/copy-documents";
import { recordDocuments } from "@portico/adapters/documents/records";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { AGENT_DEPTH, agentCopies } from "@portico/adapters/stores/agent-documents";
import type { DocumentReading } from "@portico/adapters/stores/documents-at";
import { DEFINITION_DEPTH } from "@portico/adapters/stores/workflow-folder";
import { redis } from "@portico/cluster/redis/server";
import { type Adapter, createApp, ports, record } from "@portico/core";
import { clusterProblems } from "@portico/presets/cluster/problems";
import { clusterStore } from "@portico/presets/cluster/store";
import { instanceAudit } from "@portico/presets/platform/audit-and-usage";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import * as v from "valibot";
import { commandActor } from "../command-actor.ts";
import { DOCUMENT_SOURCES, type DocumentSource } from "../backup/archive-format.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { readClusterSettings, withClusterApp } from "./cluster-app.ts";

const NAMES = Object.keys(DOCUMENT_SOURCES) as readonly DocumentSource[];

/** Says in a folder what was copied last, so that changes on both sides are noticed. */
const MARK = ".portico-documents.json";
const digestsSchema = record(v.string(), v.string());
const markSchema = v.object({ agents: digestsSchema, workflows: digestsSchema });
type Mark = v.InferOutput<typeof markSchema>;

interface CopyOptions {
  /** Remove documents that the other side does not have. */
  readonly prune: boolean;
  /** Overwrite changes of the other side. */
  readonly force: boolean;
}

/** What a copy did with the documents of both areas: `agents/helper/agent.json`. */
export interface Copied extends Pick<CopiedDocuments, "written" | "removed" | "unchanged"> {
  /** Files of skills that are not text of at most 1 MiB. */
  readonly leftOut: readonly string[];
}

/** Copy a folder with the folders `agents` and `workflows` into the database. Throws CommandFailed: 1 for conflicts, 69, 78. */
export function pushDocuments(flags: SettingsFlags, dir: string, options: CopyOptions): Promise<Copied> {
  return copy(flags, dir, { ...options, direction: "push" });
}

/** Copy the documents of the database into such a folder. Throws as `pushDocuments` does. */
export function pullDocuments(flags: SettingsFlags, dir: string, options: CopyOptions): Promise<Copied> {
  return copy(flags, dir, { ...options, direction: "pull" });
}

/** Names of all documents in the database. Throws CommandFailed (69, 78). */
export async function listDocuments(flags: SettingsFlags): Promise<readonly string[]> {
  const settings = await readDatabaseSettings(flags);
  return withSources(databaseAdapters(settings), async (database) => {
    const lists = await Promise.all(NAMES.map(async (source) => inSource(source, await database(source).list())));
    return lists.flat();
  });
}

async function copy(
  flags: SettingsFlags,
  dir: string,
  { prune, force, direction }: CopyOptions & { readonly direction: "push" | "pull" },
): Promise<Copied> {
  const settings = await readDatabaseSettings(flags);
  const base = await readMark(dir);
  const leftOut = new Set<string>();
  const results = await withSources(databaseAdapters(settings), (database, audit) =>
    withSources(folderAdapters(dir), async (ofFolder) => {
      const folder = (source: DocumentSource) =>
        source === "agents" ? withSkills(ofFolder(source), dir, (name) => leftOut.add(name)) : ofFolder(source);
      const [from, to] = direction === "push" ? [folder, database] : [database, folder];
      const copies: [DocumentSource, CopiedDocuments][] = [];
      for (const source of NAMES) {
        const accepts = (name: string) => DOCUMENT_SOURCES[source].test(name);
        const copySource = () => copyDocuments({ from: from(source), to: to(source), accepts, base: base[source], force, prune });
        const copied = direction === "push" ? await audited(audit!, source, copySource) : await copySource();
        copies.push([source, copied]);
        await writeMark(dir, { ...base, ...Object.fromEntries(copies.map(([name, { digests }]) => [name, digests])) });
      }
      return copies;
    }),
  );
  const all = (of: "written" | "removed" | "unchanged" | "conflicts") =>
    results.flatMap(([source, copied]) => inSource(source, copied[of]));
  const conflicts = all("conflicts");
  if (conflicts.length > 0) throw new CommandFailed(conflictWords(conflicts, direction), EXIT.failed);
  return {
    written: all("written"),
    removed: all("removed"),
    unchanged: all("unchanged"),
    leftOut: inSource("agents", [...leftOut]),
  };
}

/** The agents of a folder with the files of their skills. Other files of the agents are neither copied nor removed. */
function withSkills(agents: ports.Documents, dir: string, leftOut: (name: string) => void) {
  return {
    ...agentCopies({ documents: agents, directory: join(dir, agents.id), leftOut }),
    write: agents.write.bind(agents),
    remove: agents.remove.bind(agents),
  };
}

async function readDatabaseSettings(flags: SettingsFlags): Promise<PlatformSettings> {
  const settings = await readClusterSettings(flags);
  if (settings.cluster.documents === "database") return settings;
  throw new CommandFailed(
    'cluster.documents is "directory": the documents are files in the folders of the configuration',
    EXIT.config,
  );
}

/** With the bus, so that running processes hear of changes at once. */
function databaseAdapters(settings: PlatformSettings): readonly Adapter[] {
  return [
    ...clusterStore(settings, [ports.records, ports.bus, redis, ports.signing, ports.secrets]),
    instanceAudit({ audit: { ...settings.audit, keep: "forever" } }),
    ...NAMES.map((id) => recordDocuments({ id })),
  ];
}

function folderAdapters(dir: string): readonly Adapter[] {
  const depth = { agents: AGENT_DEPTH, workflows: DEFINITION_DEPTH };
  return NAMES.map((id) => unstorageDocuments({ id, dir: join(dir, id), depth: depth[id] }));
}

async function withSources<T>(
  adapters: readonly Adapter[],
  use: (of: (source: DocumentSource) => ports.Documents, audit: ports.Audit | undefined) => Promise<T>,
): Promise<T> {
  try {
    return await withClusterApp(adapters, async (app) => {
      const sources = app.port(ports.documents);
      const audit = app.has(ports.audit) ? app.port(ports.audit) : undefined;
      return use((source) => sources.find(({ id }) => id === source)!, audit);
    });
  } catch (error) {
    if (!(error instanceof ports.DocumentConflict)) throw error;
    throw new CommandFailed("Another program changed a document meanwhile: run the command again", EXIT.failed, error);
  }
}

/** Records that documents are pushed, and then which documents were changed. */
async function audited(
  audit: ports.Audit,
  source: DocumentSource,
  push: () => Promise<CopiedDocuments>,
): Promise<CopiedDocuments> {
  const who = commandActor();
  const copied = await audit.attempt({ action: "documents.push", object: source, who }, push);
  for (const object of inSource(source, copied.written)) await audit.record({ action: "document.write", object, who });
  for (const object of inSource(source, copied.removed)) await audit.record({ action: "document.remove", object, who });
  return copied;
}

function inSource(source: DocumentSource, names: readonly string[]): readonly string[] {
  return names.map((name) => `${source}/${name}`);
}

function conflictWords(names: readonly string[], direction: "push" | "pull"): string {
  const [where, other] = direction === "push" ? ["in the database", "pull"] : ["in the folder", "push"];
  return [
    ...names.map((name) => `${name} was changed ${where}`),
    `Nothing was copied of these documents. Merge them (portico documents ${other} into another folder shows the other side), or use --force`,
  ].join("\n");
}

async function readMark(dir: string): Promise<Mark> {
  try {
    return v.parse(markSchema, JSON.parse(await readFile(join(dir, MARK), "utf8")));
  } catch {
    // Without it, every document that differs is a conflict, so nothing is lost.
    return { agents: {}, workflows: {} };
  }
}

async function writeMark(dir: string, mark: Mark): Promise<void> {
  await writeFile(join(dir, MARK), `${JSON.stringify(mark, null, 2)}\n`);
}

/** Documents in the database of a cluster, to be read without an app. Throws DocumentsUnavailable. */
export async function readDatabaseDocuments(settings: PlatformSettings, source: DocumentSource): Promise<DocumentReading> {
  const [problem] = clusterProblems(settings);
  if (problem !== undefined) throw new ports.DocumentsUnavailable(problem);
  const adapters = [...clusterStore(settings, [ports.records]), recordDocuments({ id: source })];
  const app = await createApp({ name: "documents", adapters }).catch((cause: unknown) => {
    if (!(cause instanceof ports.RecordsUnavailable)) throw cause;
    throw new ports.DocumentsUnavailable(cause.message, { cause });
  });
  const [documents] = app.port(ports.documents);
  return { read: documents!.read, list: documents!.list, close: () => app.close() };
}
