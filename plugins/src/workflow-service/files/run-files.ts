import type { Readable } from "node:stream";
import { createPendingUploads, type ports, writeAgain } from "@portico/core";

/** A file of one run or of several, as it is stored. Its bytes are the blob `workflow-files/ID`. */
interface FileRecord extends Omit<ports.RunFile, "file"> {
  /** ISO 8601. */
  readonly createdAt: string;
  /** The number of runs that have it: the last one that is removed removes the bytes. */
  readonly links: number;
}

/** That a run has a file: the record `RUN/FILE`. */
interface FileLink {
  /** Bytes. */
  readonly size: number;
  /** The attempt of a node that saved it. Absent in the runs that got it from another run. */
  readonly savedBy?: string | undefined;
}

/** The collection whose records each have one blob: `COLLECTION/ID`. */
export const RUN_FILES = "workflow-files";
const LINKS = "workflow-file-links";
const PAGE = 100;

const keyOf = (file: string): string => `${RUN_FILES}/${file}`;
const linkOf = (runId: string, file: string): string => `${runId}/${file}`;

/** A file of a run, and when it was saved (ISO 8601). */
export interface ListedFile extends ports.RunFile {
  readonly createdAt: string;
}

/** How many files, and how many bytes all of them have. */
export interface FilesUsage {
  readonly count: number;
  readonly bytes: number;
}

/** Access to the files of all runs (`createRunFiles`). */
export type RunFiles = ReturnType<typeof createRunFiles>;

/**
 * The files of all runs. A run has the files that its nodes saved, and those that it got from the run that it resumes, repeats, or belongs to.
 * Works in any process. Functions throw RecordsUnavailable and BlobsUnavailable.
 */
export function createRunFiles(given: {
  readonly records: ports.Records;
  readonly blobs: ports.Blobs;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
}) {
  const { records, blobs, clock } = given;
  const files = records.collection<FileRecord>({ name: RUN_FILES });
  const links = records.collection<FileLink>({ name: LINKS });
  const pending = createPendingUploads(given);

  const read = async (file: string): Promise<ListedFile | undefined> => {
    const found = await files.get(file);
    if (!found) return undefined;
    const { name, mediaType, size, sha256, createdAt } = found.value;
    return { file, name, mediaType, size, sha256, createdAt };
  };

  /** The links of a run, in pages. */
  async function* linksOf(runId: string): AsyncGenerator<readonly { readonly file: string; readonly link: FileLink }[], void> {
    const prefix = linkOf(runId, "");
    for (let last = prefix; ;) {
      const { items, next } = await links.query({ limit: PAGE, after: { value: null, id: last } });
      const own = items.filter(({ id }) => id.startsWith(prefix));
      if (own.length > 0) yield own.map(({ id, value }) => ({ file: id.slice(prefix.length), link: value }));
      if (own.length < items.length || next === undefined) return;
      last = items.at(-1)!.id;
    }
  }

  /** Takes files from a run in one commit, and removes the bytes of those that no other run has. */
  const unlink = (runId: string, taken: readonly string[]): Promise<void> =>
    writeAgain(async () => {
      const found = await Promise.all(
        taken.map(async (file) => {
          const [link, stored] = await Promise.all([links.get(linkOf(runId, file)), files.get(file)]);
          return { file, link, stored };
        }),
      );
      const writes: ports.Write[] = [];
      const unused: string[] = [];
      for (const { file, link, stored } of found) {
        if (!link) continue;
        writes.push(links.write.remove(link.id, link.version));
        if (!stored) continue;
        const { links: count, ...rest } = stored.value;
        if (count <= 1) unused.push(keyOf(file));
        writes.push(
          count > 1
            ? files.write.put(file, { ...rest, links: count - 1 }, stored.version)
            : files.write.remove(file, stored.version),
        );
      }
      await pending.removeAll(unused, (notes) => records.batch([...writes, ...notes]));
    });

  /** The writes that give a run a file of another one, and its size. Undefined if it has the file, or the other run does not. */
  const sharing = async (
    from: string,
    to: string,
    file: string,
  ): Promise<{ readonly writes: readonly ports.Write[]; readonly size: number } | undefined> => {
    const [theirs, own, stored] = await Promise.all([
      links.get(linkOf(from, file)),
      links.get(linkOf(to, file)),
      files.get(file),
    ]);
    if (!theirs || own || !stored) return undefined;
    const { size } = stored.value;
    return {
      size,
      writes: [
        files.write.put(file, { ...stored.value, links: stored.value.links + 1 }, stored.version),
        links.write.put(linkOf(to, file), { size }, "absent"),
      ],
    };
  };

  const shareOne = (
    from: string,
    to: string,
    file: string,
    reserve?: (size: number) => () => void,
  ): Promise<number | undefined> =>
    writeAgain(async () => {
      const found = await sharing(from, to, file);
      if (!found) return undefined;
      const giveBack = reserve?.(found.size);
      try {
        await records.batch(found.writes);
      } catch (error) {
        giveBack?.();
        throw error;
      }
      return found.size;
    });

  return {
    /**
     * Store bytes as a file of a run. `refuse` is asked for an error once the size is known. `held` is a condition of the commit. Also throws
     * BlobTooLarge, RecordConflict, and the errors of the source.
     */
    save(
      runId: string,
      file: string,
      {
        source,
        about,
        savedBy,
        maxBytes,
        held,
        signal,
        refuse,
      }: {
        readonly source: ports.BlobSource;
        readonly about: Pick<ports.RunFile, "name" | "mediaType">;
        readonly savedBy: string;
        readonly maxBytes: number;
        readonly held: readonly ports.Write[];
        readonly signal: AbortSignal;
        refuse(size: number): Error | undefined;
      },
    ): Promise<ports.RunFile> {
      return pending.store(
        keyOf(file),
        () => blobs.put(keyOf(file), source, { maxBytes, ifAbsent: true, signal }),
        async ({ size, sha256 }, ends) => {
          const refused = refuse(size);
          if (refused) throw refused;
          const record = { ...about, size, sha256, createdAt: new Date(clock.now()).toISOString(), links: 1 };
          await records.batch([
            files.write.put(file, record, "absent"),
            links.write.put(linkOf(runId, file), { size, savedBy }, "absent"),
            ends,
            ...held,
          ]);
          return { file, ...about, size, sha256 };
        },
      );
    },
    /**
     * Give a run one file of another one. Returns its bytes, or undefined if the run has it already or the other run does not. `reserve` is
     * called with the bytes before each commit, and may throw. What it returns is called if the commit fails.
     */
    shareOne,
    /**
     * Give a run the files of another one: all, or those that are named. Files that the other run does not have are left out. Returns what the
     * run did not have before.
     */
    async share(from: string, to: string, named?: ReadonlySet<string>): Promise<FilesUsage> {
      let [count, bytes] = [0, 0];
      const add = async (file: string) => {
        const size = await shareOne(from, to, file);
        if (size === undefined) return;
        count++;
        bytes += size;
      };
      if (named) for (const file of named) await add(file);
      else for await (const page of linksOf(from)) for (const { file } of page) await add(file);
      return { count, bytes };
    },
    /** The writes that give a new run these files of another one, as `share` does. The commit is a RecordConflict if a file has changed since. */
    async shareWith(from: string, to: string, named: ReadonlySet<string>): Promise<readonly ports.Write[]> {
      const writes: ports.Write[] = [];
      for (const file of named) writes.push(...((await sharing(from, to, file))?.writes ?? []));
      return writes;
    },
    unlink,
    /** Remove the files of a run in one commit for each page, or those that one attempt of a node saved. It can be repeated. Returns what was removed. */
    async removeOf(runId: string, savedBy?: string): Promise<FilesUsage> {
      let [count, bytes] = [0, 0];
      for await (const page of linksOf(runId)) {
        const taken = savedBy === undefined ? page : page.filter(({ link }) => link.savedBy === savedBy);
        if (taken.length === 0) continue;
        await unlink(
          runId,
          taken.map(({ file }) => file),
        );
        count += taken.length;
        for (const { link } of taken) bytes += link.size;
      }
      return { count, bytes };
    },
    /** What a run has. */
    async usage(runId: string): Promise<FilesUsage> {
      let [count, bytes] = [0, 0];
      for await (const page of linksOf(runId)) {
        count += page.length;
        for (const { link } of page) bytes += link.size;
      }
      return { count, bytes };
    },
    /** A file of a run. Undefined for a file that the run does not have. */
    async find(runId: string, file: string): Promise<ListedFile | undefined> {
      return (await links.get(linkOf(runId, file))) ? read(file) : undefined;
    },
    /** The files of a run, in pages. */
    async *list(runId: string): AsyncGenerator<readonly ListedFile[], void> {
      for await (const page of linksOf(runId)) {
        const found = await Promise.all(page.map(({ file }) => read(file)));
        yield found.flatMap((file) => file ?? []);
      }
    },
    /** The bytes of a file, or a range of them. Undefined if they are missing or not as many as they were. */
    async open(
      { file, size }: Pick<ports.RunFile, "file" | "size">,
      options: ports.OpenBlobOptions,
    ): Promise<Readable | undefined> {
      const opened = await blobs.open(keyOf(file), options);
      if (opened?.size === size) return opened.stream;
      opened?.stream.destroy();
      return undefined;
    },
    /** Whether the bytes of a file are there. */
    isWhole: async ({ file, size }: Pick<ports.RunFile, "file" | "size">): Promise<boolean> =>
      (await blobs.stat(keyOf(file)))?.size === size,
    /** Removes the bytes that interrupted uploads and removals left. */
    sweep: pending.sweep,
  };
}

/** A new id of a file of a run. */
export function newFileId(ids: ports.Ids): string {
  return ids.id("wfile_");
}

/** Whether a value has the form of such an id. */
export function isFileId(value: unknown): value is string {
  return typeof value === "string" && /^wfile_[A-Za-z0-9]{17,64}$/.test(value);
}

/** The ids of files that a JSON value names: of each object with such an id as `file`. */
export function filesIn(value: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  const open: unknown[] = [value];
  while (open.length > 0) {
    const each = open.pop();
    if (typeof each !== "object" || each === null) continue;
    if ("file" in each && isFileId(each.file)) found.add(each.file);
    // A spread of a long list would use up the stack.
    for (const inner of Object.values(each)) open.push(inner);
  }
  return found;
}
