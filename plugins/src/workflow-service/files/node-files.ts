import { cleanFileName, cleanMediaType, isStoreAway, isTextMediaType, ports } from "@portico/core";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";
import { isFileId, newFileId, type RunFiles, type FilesUsage } from "./run-files.ts";
import { RUN_FILES_MOST } from "../contracts/limits.ts";

/** What the files of one execution of a run share. */
interface RunFilesGiven {
  readonly files: RunFiles;
  readonly limits: FileLimits;
  readonly ids: ports.Ids;
  readonly userFiles: readonly ports.UserFiles[];
  readonly runId: string;
  /** The user whom the grant of the run names. */
  readonly grantUserId: string | undefined;
  /** The condition that this execution still has the run. */
  readonly held: ports.Write;
  readonly secrecy: RunSecrecy;
}

/** The files of one execution of a run. */
export interface FilesOfRun {
  /** The files for an attempt of a node, which is named by `savedBy`. */
  forAttempt(savedBy: string, signal: AbortSignal): NodeFilesOfAttempt;
  /** Removes what an earlier execution of an attempt saved, whose result was lost. */
  forget(savedBy: string): Promise<void>;
  /** Gives the run files with which it begins, of another run: all, or those that are named. They count, but are not refused. */
  beginWith(runId: string, named?: ReadonlySet<string>): Promise<void>;
  /**
   * Gives the run the named files of another one. Throws NodeFailed `too_many_files` or `run_files_too_large` if the run would then have more
   * than it may. It then gets no file.
   */
  shareFrom(runId: string, named: ReadonlySet<string>): Promise<void>;
}

/** With the files that the attempt has saved. */
interface NodeFilesOfAttempt extends ports.NodeFiles {
  /** Removes what the attempt has saved: it has failed. */
  discard(): Promise<void>;
}

export function filesOfRun({ files, limits, ids, userFiles, runId, grantUserId, held, secrecy }: RunFilesGiven): FilesOfRun {
  const room = createFileRoom(files, runId, limits);
  const unlink = async ({ file, size }: Pick<ports.RunFile, "file" | "size">): Promise<void> => {
    await files.unlink(runId, [file]);
    await room.note({ count: 1, bytes: size }, -1);
  };

  return {
    async beginWith(from, named) {
      if (named?.size !== 0) await room.note(await files.share(from, runId, named), 1);
    },
    async shareFrom(from, named) {
      if (named.size === 0) return;
      const used = await room.used();
      // Counted before it is written: nodes share and save at the same time.
      const reserve = (size: number) => {
        const reservation = room.take(used);
        const full = reservation.fill(size);
        if (!full) return () => reservation.giveBack();
        reservation.giveBack();
        throw full;
      };
      const shared: Pick<ports.RunFile, "file" | "size">[] = [];
      try {
        for (const file of named) {
          const size = await files.shareOne(from, runId, file, reserve);
          if (size !== undefined) shared.push({ file, size });
        }
      } catch (error) {
        // After other errors, the caller repeats the call.
        if (error instanceof ports.NodeFailed) for (const each of shared) await unlink(each);
        throw error;
      }
    },
    async forget(savedBy) {
      if ((await room.used()).count > 0) await room.note(await files.removeOf(runId, savedBy), -1);
    },
    forAttempt(savedBy, signal) {
      const saved: ports.RunFile[] = [];
      let isDiscarded = false;
      const find = async (value: unknown): Promise<ports.RunFile> => {
        const id = typeof value === "object" && value !== null && "file" in value ? value.file : value;
        const found = isFileId(id) ? await files.find(runId, id).catch(toFailure) : undefined;
        if (!found) throw failed("file_not_found", "The run has no such file");
        const { createdAt: _createdAt, ...file } = found;
        return file;
      };
      const save: ports.NodeFiles["save"] = async (source, { name, mediaType }) => {
        const about = { name: cleanFileName(secrecy.mask(name), "file"), mediaType: secrecy.mask(cleanMediaType(mediaType)) };
        let reservation: FileReservation | undefined;
        try {
          reservation = room.take(await room.used());
          const { fill } = reservation;
          const file = await files.save(runId, newFileId(ids), {
            source: isTextMediaType(about.mediaType) ? secrecy.maskBytes(source) : source,
            about,
            ...{ savedBy, signal, held: [held] },
            maxBytes: reservation.maxBytes,
            // The node may have ignored its signal.
            refuse: (size) => (isDiscarded ? attemptEnded() : fill(size)),
          });
          // The attempt may have ended while the file was stored.
          if (!isDiscarded) {
            saved.push(file);
            return file;
          }
          await files.unlink(runId, [file.file]);
          throw attemptEnded();
        } catch (error) {
          reservation?.giveBack();
          // Only the storage of blobs ends a source, and only if it was asked to store it.
          endSource(source);
          throw error instanceof ports.BlobTooLarge && reservation ? reservation.tooLarge() : toFailureOf(error);
        }
      };
      return {
        save,
        find,
        async open(value) {
          const file = await find(value);
          const stream = await files.open(file, { signal }).catch(toFailure);
          if (!stream) throw failed("file_not_found", "The bytes of the file are missing");
          return stream;
        },
        async copyAttachment(fileReference) {
          if (grantUserId === undefined)
            throw failed("attachment_user_required", "Only a run whose grant names a user has attachments");
          if (userFiles.length === 0) throw failed("attachments_unavailable", "This service reads no attachments");
          try {
            for (const source of userFiles) {
              const found = await source.attachment(grantUserId, fileReference);
              if (found) return await save(await found.open(signal), { name: found.name, mediaType: found.mimeType });
            }
          } catch (error) {
            if (!(error instanceof ports.UserFilesUnavailable)) throw error;
            throw new ports.NodeFailed("attachments_unavailable", "Attachments are unavailable now", { cause: error });
          }
          throw failed("attachment_not_found", "The user of the run's grant has no such attachment");
        },
        async discard() {
          isDiscarded = true;
          for (const file of saved.splice(0)) await unlink(file);
        },
      };
    },
  };
}

const attemptEnded = (): ports.NodeFailed => failed("files_unavailable", "The attempt has ended");

/** Closes what a source reads from. */
function endSource(source: ports.BlobSource): void {
  if ("destroy" in source) return void source.on("error", () => {}).destroy();
  try {
    void source[Symbol.asyncIterator]()
      .return?.()
      .catch(() => {});
  } catch {
    // It is being read, or was read.
  }
}

/** Errors of stores, as failures that a retry may mend. All other errors stay. */
function toFailureOf(error: unknown): unknown {
  const isAway = isStoreAway(error) || error instanceof ports.BlobsUnavailable;
  return isAway ? new ports.NodeFailed("files_unavailable", "The files of runs are unavailable now", { cause: error }) : error;
}

function toFailure(error: unknown): never {
  throw toFailureOf(error);
}

/** Maximum bytes of one file, and of all files that a run has. */
interface FileLimits {
  readonly maxBytes: number;
  readonly maxRunBytes: number;
}

/** The reservation of one file among those of its run. */
type FileReservation = ReturnType<ReturnType<typeof createFileRoom>["take"]>;

/** Counts the files of a run. One execution counts, because only it adds files. Nodes that add files at the same time count together. */
function createFileRoom(files: RunFiles, runId: string, { maxBytes, maxRunBytes }: FileLimits) {
  let counted: Promise<{ count: number; bytes: number }> | undefined;
  const used = () =>
    (counted ??= files.usage(runId).then(
      (usage) => ({ ...usage }),
      (error: unknown) => {
        counted = undefined;
        throw error;
      },
    ));
  /** Counts files that the run got, or lost. Before the first count, there is nothing to correct. */
  const note = async ({ count, bytes }: FilesUsage, sign: 1 | -1): Promise<void> => {
    const usage = await counted;
    if (!usage) return;
    usage.count += sign * count;
    usage.bytes += sign * bytes;
  };
  const runTooLarge = () => failed("run_files_too_large", `The files of a run have at most ${inWords(maxRunBytes)}`);

  return {
    used,
    note,
    /** Takes the reservation of one more file. `usage` is the result of `used`. Throws NodeFailed if the run has its most files. */
    take(usage: { count: number; bytes: number }) {
      if (usage.count >= RUN_FILES_MOST) throw failed("too_many_files", `A run has at most ${RUN_FILES_MOST} files`);
      const left = Math.max(0, maxRunBytes - usage.bytes);
      let taken = 0;
      usage.count++;
      return {
        /** Maximum bytes of this file. */
        maxBytes: Math.min(maxBytes, left),
        /** Why the file has too many bytes. */
        tooLarge: () =>
          left < maxBytes ? runTooLarge() : failed("file_too_large", `A file of a run has at most ${inWords(maxBytes)}`),
        /** Counts the file's bytes once they are known. Returns the failure if other nodes have used the room meanwhile. */
        fill(size: number): ports.NodeFailed | undefined {
          if (usage.bytes + size > maxRunBytes) return runTooLarge();
          taken = size;
          usage.bytes += size;
          return undefined;
        },
        /** For a file that the run does not get. */
        giveBack(): void {
          usage.count--;
          usage.bytes -= taken;
          taken = 0;
        },
      };
    },
  };
}

/** A failure of a node that a retry cannot mend. */
function failed(code: string, message: string): ports.NodeFailed {
  return new ports.NodeFailed(code, message, { retryable: false });
}

function inWords(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024;
  return mebibytes >= 1 ? `${Math.round(mebibytes * 10) / 10} MiB` : `${bytes} bytes`;
}
