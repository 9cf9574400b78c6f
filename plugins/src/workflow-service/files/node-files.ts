import { cleanFileName, cleanMediaType, isStoreAway, ports } from "@portico/core";
import { RUN_FILES_MOST } from "../limits.ts";
import { isFileId, newFileId } from "./file-id.ts";
import type { FilesUsage, RunFiles } from "./run-files.ts";

/** Maximum bytes of one file, and of all files that a run has. */
export interface FileLimits {
  readonly maxBytes: number;
  readonly maxRunBytes: number;
}

/** What the files of one execution of a run share. */
export interface RunFilesGiven {
  readonly files: RunFiles;
  readonly limits: FileLimits;
  readonly ids: ports.Ids;
  readonly userFiles: readonly ports.UserFiles[];
  readonly runId: string;
  /** The user whom the grant of the run names. */
  readonly grantUserId: string | undefined;
  /** The condition that this execution still has the run. */
  readonly held: ports.Write;
}

/** The files of one execution of a run. */
export interface FilesOfRun {
  /** The files for an attempt of a node, which is named by `savedBy`. */
  forAttempt(savedBy: string, signal: AbortSignal): NodeFilesOfAttempt;
  /** Removes what an earlier execution of an attempt saved, whose result was lost. */
  forget(savedBy: string): Promise<void>;
  /** Gives the run files of another one: all, or those that are named. */
  shareFrom(runId: string, named?: ReadonlySet<string>): Promise<void>;
}

/** With the files that the attempt has saved. */
export interface NodeFilesOfAttempt extends ports.NodeFiles {
  /** Removes what the attempt has saved: it has failed. */
  discard(): Promise<void>;
}

export function filesOfRun({ files, limits, ids, userFiles, runId, grantUserId, held }: RunFilesGiven): FilesOfRun {
  /** Counted by this execution, because only it saves files. Attempts that save at the same time count together. */
  let counted: Promise<{ count: number; bytes: number }> | undefined;
  const usage = () =>
    (counted ??= files.usage(runId).then(
      (used) => ({ ...used }),
      (error: unknown) => {
        counted = undefined;
        throw error;
      },
    ));
  const note = async ({ count, bytes }: FilesUsage, sign: 1 | -1): Promise<void> => {
    const used = await counted;
    if (!used) return;
    used.count += sign * count;
    used.bytes += sign * bytes;
  };

  return {
    async shareFrom(from, named) {
      if (named?.size !== 0) await note(await files.share(from, runId, named), 1);
    },
    async forget(savedBy) {
      if ((await usage()).count > 0) await note(await files.removeOf(runId, savedBy), -1);
    },
    forAttempt(savedBy, signal) {
      const saved: ports.RunFile[] = [];
      let isDiscarded = false;
      const find = async (value: unknown): Promise<ports.RunFile> => {
        const id = typeof value === "object" && value !== null && "file" in value ? value.file : value;
        const found = isFileId(id) ? await files.find(runId, id).catch(toFailure) : undefined;
        if (!found) throw failed("file_not_found", "The run has no such file", false);
        const { createdAt: _createdAt, ...file } = found;
        return file;
      };
      const save: ports.NodeFiles["save"] = async (source, { name, mediaType }) => {
        const used = await usage().catch(toFailure);
        if (used.count >= RUN_FILES_MOST) throw failed("too_many_files", `A run has at most ${RUN_FILES_MOST} files`, false);
        const room = Math.max(0, limits.maxRunBytes - used.bytes);
        const tooLarge = () =>
          room < limits.maxBytes
            ? failed("run_files_too_large", `The files of a run have at most ${inWords(limits.maxRunBytes)}`, false)
            : failed("file_too_large", `A file of a run has at most ${inWords(limits.maxBytes)}`, false);
        used.count++;
        let counted = 0;
        try {
          const file = await files.save(runId, newFileId(ids), {
            source,
            about: { name: cleanFileName(name, "file"), mediaType: cleanMediaType(mediaType) },
            ...{ savedBy, signal, held: [held] },
            maxBytes: Math.min(limits.maxBytes, room),
            refuse(size) {
              // The node ignored its signal.
              if (isDiscarded) return failed("files_unavailable", "The attempt has ended", false);
              // Others may have saved meanwhile.
              if (used.bytes + size > limits.maxRunBytes)
                return failed("run_files_too_large", `The files of a run have at most ${inWords(limits.maxRunBytes)}`, false);
              counted = size;
              used.bytes += size;
              return undefined;
            },
          });
          saved.push(file);
          return file;
        } catch (error) {
          used.count--;
          used.bytes -= counted;
          throw error instanceof ports.BlobTooLarge ? tooLarge() : toFailureOf(error);
        }
      };
      return {
        save,
        find,
        async open(value) {
          const file = await find(value);
          const stream = await files.open(file, { signal }).catch(toFailure);
          if (!stream) throw failed("file_not_found", "The bytes of the file are missing", false);
          return stream;
        },
        async copyAttachment(fileReference) {
          if (grantUserId === undefined)
            throw failed("attachment_user_required", "Only a run whose grant names a user has attachments", false);
          try {
            for (const source of userFiles) {
              const found = await source.attachment(grantUserId, fileReference);
              if (found) return await save(await found.open(signal), { name: found.name, mediaType: found.mimeType });
            }
          } catch (error) {
            if (!(error instanceof ports.UserFilesUnavailable)) throw error;
            throw new ports.NodeFailed("attachments_unavailable", "Attachments are unavailable now", { cause: error });
          }
          throw failed("attachment_not_found", "The user of the run's grant has no such attachment", false);
        },
        async discard() {
          isDiscarded = true;
          for (const { file, size } of saved.splice(0)) {
            await files.unlink(runId, file);
            await note({ count: 1, bytes: size }, -1);
          }
        },
      };
    },
  };
}

function failed(code: string, message: string, retryable: boolean): ports.NodeFailed {
  return new ports.NodeFailed(code, message, { retryable });
}

/** Errors of stores, as failures that a retry may mend. All other errors stay. */
function toFailureOf(error: unknown): unknown {
  const isAway = isStoreAway(error) || error instanceof ports.BlobsUnavailable;
  return isAway ? new ports.NodeFailed("files_unavailable", "The files of runs are unavailable now", { cause: error }) : error;
}

function toFailure(error: unknown): never {
  throw toFailureOf(error);
}

function inWords(bytes: number): string {
  const mebibytes = bytes / 1024 / 1024;
  return mebibytes >= 1 ? `${Math.round(mebibytes * 10) / 10} MiB` : `${bytes} bytes`;
}
