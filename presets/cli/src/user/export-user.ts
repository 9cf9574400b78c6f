import { createWriteStream } from "node:fs";
import { type FileHandle, mkdir, open, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ports } from "@portico/core";
import { VERSION } from "@portico/presets/platform/version";
import { commandActor } from "../command-actor.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { hasStore, withStores } from "../store-app.ts";
import { USER_PORTS, type UserStores, userStoresOf } from "./user-stores.ts";

/** The format of exports. */
const FORMAT = 1;
/** The last file: it says that the export is complete. */
const LAST = "export.json";

const FILES = {
  run: "runs",
  receipt: "receipts",
  conversation: "conversations",
  branches: "conversation-branches",
  message: "messages",
  submission: "submissions",
  delivery: "deliveries",
  "waiting-event": "waiting-events",
  "failed-event": "failed-events",
  approval: "approvals",
  consent: "tool-consents",
  memory: "agent-memories",
  "workflow-run": "workflow-runs",
  "workflow-history": "workflow-history",
  "workflow-file": "workflow-files",
} as const;

/** What was exported, by file, and the files whose bytes were missing. */
interface ExportedUser {
  readonly userId: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly missing: readonly string[];
}

/**
 * Write everything that the instance keeps of a user into a new folder: lines of JSON, and files. Works beside a running service. Memory does
 * not grow with the data. Throws CommandFailed: 1 if nothing is kept of the user, 73 if the folder exists or cannot be written, 69, 78.
 */
export async function exportUser(flags: SettingsFlags, userId: string, dir: string): Promise<ExportedUser> {
  const { settings } = await readSettings(flags);
  const folder = resolve(dir);
  const lines = await createLineFiles(folder).catch((cause: unknown) => {
    throw toCannotWrite(folder, cause);
  });
  try {
    const exported = new Exported(userId, lines);
    if (hasStore(settings)) {
      const fact = { action: "user.export", object: userId, who: commandActor() };
      await withStores(settings, { needed: USER_PORTS }, (app) =>
        app.port(ports.audit).attempt(fact, () =>
          exported.addAll(userStoresOf(app)).catch((error: unknown) => {
            throw isFileError(error) ? toCannotWrite(folder, error) : error;
          }),
        ),
      );
    }
    const result = exported.result();
    if (exported.isEmpty) {
      await lines.close();
      await rm(folder, { recursive: true });
      throw new CommandFailed(`Nothing is kept of a user with the id ${JSON.stringify(userId)}`, EXIT.failed);
    }
    await lines.finish(LAST, { format: FORMAT, version: VERSION, exportedAt: new Date().toISOString(), ...result });
    return result;
  } finally {
    await lines.close();
  }
}

class Exported {
  readonly #userId: string;
  readonly #lines: LineFiles;
  readonly #counts = new Map<string, number>();
  readonly #missing: string[] = [];

  constructor(userId: string, lines: LineFiles) {
    this.#userId = userId;
    this.#lines = lines;
  }

  async addAll({ runs, workflowRuns, files, accounts }: UserStores): Promise<void> {
    const { signal } = new AbortController();
    for await (const { kind, value } of runs.items(this.#userId, signal)) await this.#add(FILES[kind], value);
    for await (const { kind, value } of workflowRuns.items(this.#userId, signal)) {
      await this.#add(FILES[kind], value);
      // Several runs may have it.
      if (kind !== "workflow-file" || (await this.#lines.hasFile(FILES[kind], value.file))) continue;
      await this.#addBytes(FILES[kind], value.file, await workflowRuns.openFile(value, signal));
    }
    for await (const account of accounts.items(this.#userId)) await this.#add("tool-accounts", account);
    for await (const page of files.attachments(this.#userId)) {
      for (const file of page) await this.#addFile("attachments", file.attachmentId, file, files, signal);
    }
    for await (const page of files.media(this.#userId)) {
      for (const file of page) await this.#addFile("media", file.mediaId, file, files, signal);
    }
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  result(): ExportedUser {
    return { userId: this.#userId, counts: Object.fromEntries(this.#counts), missing: this.#missing };
  }

  async #add(name: string, value: object): Promise<void> {
    await this.#lines.add(name, value);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  async #addFile(
    folder: string,
    id: string,
    file: Parameters<UserStores["files"]["open"]>[0],
    files: UserStores["files"],
    signal: AbortSignal,
  ): Promise<void> {
    await this.#add(folder, file);
    await this.#addBytes(folder, id, (await files.open(file, signal))?.stream);
  }

  async #addBytes(folder: string, id: string, stream: Readable | undefined): Promise<void> {
    if (stream) await this.#lines.addFile(folder, id, stream);
    else this.#missing.push(`${folder}/${id}`);
  }
}

function isFileError(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

function toCannotWrite(folder: string, cause: unknown): CommandFailed {
  const { code } = cause as NodeJS.ErrnoException;
  const why = code === "EEXIST" ? "exists already: give a new folder" : `cannot be written (${code})`;
  return new CommandFailed(`The folder ${folder} ${why}`, EXIT.cannotCreate, cause);
}

const OWNER_ONLY = 0o600;
const HELD_CHARACTERS = 64 * 1024;

/** A new folder of files with one line of JSON per item, and of other files. Only its owner can read it. */
interface LineFiles {
  /** Add a line to `NAME.jsonl`. */
  add(name: string, item: object): Promise<void>;
  /** Write a file of a subfolder from a stream. */
  addFile(folder: string, name: string, bytes: Readable): Promise<void>;
  /** Whether a file was added. */
  hasFile(folder: string, name: string): Promise<boolean>;
  /** Write all that is held, and a last file: a folder without it is not complete. */
  finish(name: string, content: object): Promise<void>;
  close(): Promise<void>;
}

/** Throws the error of the file system, for example if the folder exists. */
async function createLineFiles(dir: string): Promise<LineFiles> {
  await mkdir(dir, { mode: 0o700 });
  const files = new Map<string, { readonly handle: FileHandle; held: string }>();
  const folders = new Set<string>();

  const fileOf = async (name: string) => {
    const known = files.get(name);
    if (known) return known;
    const made = { handle: await open(join(dir, `${name}.jsonl`), "wx", OWNER_ONLY), held: "" };
    files.set(name, made);
    return made;
  };
  const close = async () => {
    await Promise.all([...files.values()].map(({ handle }) => handle.close()));
    files.clear();
  };
  return {
    async add(name, item) {
      const file = await fileOf(name);
      file.held += `${JSON.stringify(item)}\n`;
      if (file.held.length < HELD_CHARACTERS) return;
      const text = file.held;
      file.held = "";
      await file.handle.appendFile(text);
    },
    async addFile(folder, name, bytes) {
      if (!folders.has(folder)) await mkdir(join(dir, folder), { mode: 0o700 });
      folders.add(folder);
      await pipeline(bytes, createWriteStream(join(dir, folder, name), { flags: "wx", mode: OWNER_ONLY, flush: true }));
    },
    hasFile: (folder, name) =>
      stat(join(dir, folder, name)).then(
        () => true,
        () => false,
      ),
    async finish(name, content) {
      for (const { handle, held } of files.values()) {
        await handle.appendFile(held);
        await handle.sync();
      }
      await close();
      const last = await open(join(dir, name), "wx", OWNER_ONLY);
      try {
        await last.writeFile(`${JSON.stringify(content, null, 2)}\n`);
        await last.sync();
      } finally {
        await last.close();
      }
    },
    close,
  };
}
