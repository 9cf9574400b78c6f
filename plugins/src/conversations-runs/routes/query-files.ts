import { ports } from "@portico/core";
import { agentErrors } from "../errors.ts";
import type { TurnFile } from "../turns/turn.ts";

/** The files of a query. */
export interface FileReferences {
  readonly mediaRefs: readonly { readonly mediaId: string }[];
  readonly fileReferences: readonly string[];
}

/** The files that come with a query, if all of them are there and this user's to read. Throws the errors of queries. */
export async function queryFiles(
  files: ports.UserFiles | undefined,
  userId: string,
  { mediaRefs, fileReferences }: FileReferences,
): Promise<{ readonly media?: readonly TurnFile[]; readonly files?: readonly TurnFile[] }> {
  if (mediaRefs.length === 0 && fileReferences.length === 0) return {};
  if (!files) throw agentErrors.attachments_unavailable();
  const media = await Promise.all(
    mediaRefs.map(
      async ({ mediaId }) =>
        toTurnFile(mediaId, await files.media(userId, mediaId).catch(toServiceError)) ?? raise(agentErrors.unknown_media),
    ),
  );
  const read = await Promise.all(
    fileReferences.map(
      async (reference) =>
        toTurnFile(reference, await files.attachment(userId, reference).catch(toServiceError)) ?? raise(agentErrors.unknown_file),
    ),
  );
  return { ...(media.length > 0 && { media }), ...(read.length > 0 && { files: read }) };
}

/**
 * The writes that keep the files of a query until its turn ends, for the commit of its admission. Throws the error of unknown files if one
 * was removed since it was looked up.
 */
export async function holdFiles(
  files: ports.UserFiles | undefined,
  userId: string,
  turnId: string,
  { mediaRefs, fileReferences }: FileReferences,
): Promise<readonly ports.Write[]> {
  if (!files?.hold || (mediaRefs.length === 0 && fileReferences.length === 0)) return [];
  const used = { mediaIds: mediaRefs.map(({ mediaId }) => mediaId), fileReferences };
  return (await files.hold(userId, turnId, used).catch(toServiceError)) ?? raise(agentErrors.unknown_file);
}

function toTurnFile(reference: string, file: ports.UserFile | undefined): TurnFile | undefined {
  return file && { reference, name: file.name, mimeType: file.mimeType, size: file.size };
}

/** Files that cannot be looked up now: the client submits the same query again later. */
function toServiceError(error: unknown): never {
  if (!(error instanceof ports.UserFilesUnavailable)) throw error;
  throw agentErrors.registry_unavailable(undefined, undefined, error);
}

function raise(error: () => Error): never {
  throw error();
}
