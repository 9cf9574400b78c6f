import { parseDuration, ports } from "@portico/core";
import {
  type Attachment,
  createStoredFiles,
  FILE_COLLECTIONS,
  isUnusedSince,
  type StoredFiles,
} from "@portico/plugins/attachments-media/stored-files";
import { RUN_FILE_COLLECTIONS } from "@portico/plugins/workflow-service/stored-runs";
import { commandActor } from "./command-actor.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";
import { hasStore, withStores } from "./store-app.ts";

/** Which attachments a command is about. */
interface AttachmentFilter {
  readonly attachmentId?: string | undefined;
  readonly userId?: string | undefined;
  /** A duration: neither uploaded nor used by a query for so long. */
  readonly olderThan?: string | undefined;
}

/** What a removal did. */
interface RemovedAttachments {
  readonly removed: readonly string[];
  /** A query that waits or executes uses them. */
  readonly kept: readonly string[];
  /** Of the removed ones. */
  readonly bytes: number;
}

/** Calls `tell` with each attachment, the oldest first. Throws CommandFailed: 64 for an invalid duration. */
export async function listAttachments(
  flags: SettingsFlags,
  filter: AttachmentFilter,
  tell: (attachment: Attachment) => void,
): Promise<void> {
  await withFiles(flags, filter, async (found) => {
    for await (const attachment of found) tell(attachment);
  });
}

/** Remove attachments, with a running service or without. Throws CommandFailed: 64 if nothing says which, 1 for an unknown id. */
export async function removeAttachments(flags: SettingsFlags, filter: AttachmentFilter): Promise<RemovedAttachments> {
  const { attachmentId, userId, olderThan } = filter;
  if (attachmentId === undefined && userId === undefined && olderThan === undefined)
    throw new CommandFailed(
      "Give an attachment's id, --user or --older-than (see portico attachments remove --help)",
      EXIT.usage,
    );
  const [removed, kept]: [string[], string[]] = [[], []];
  let bytes = 0;
  const who = commandActor();
  const fact = { action: "attachments.remove", object: attachmentId ?? userId, who };
  await withFiles(flags, filter, (found, files, before, audit) =>
    audit.attempt(fact, async () => {
      for await (const attachment of found) {
        const isRemoved = await files.remove(attachment, before);
        (isRemoved ? removed : kept).push(attachment.attachmentId);
        if (!isRemoved) continue;
        bytes += attachment.size;
        await audit.record({ action: "attachment.remove", object: attachment.attachmentId, who });
      }
    }),
  );
  if (attachmentId !== undefined && removed.length + kept.length === 0)
    throw new CommandFailed("No such attachment has this id", EXIT.failed);
  return { removed, kept, bytes };
}

async function withFiles(
  flags: SettingsFlags,
  { attachmentId, userId, olderThan }: AttachmentFilter,
  use: (found: AsyncIterable<Attachment>, files: StoredFiles, before: string | undefined, audit: ports.Audit) => Promise<void>,
): Promise<void> {
  const ms = olderThan === undefined ? undefined : parseDuration(olderThan);
  if (olderThan !== undefined && ms === undefined)
    throw new CommandFailed("Option --older-than must be a duration such as 12h or 30d", EXIT.usage);
  const { settings } = await readSettings(flags);
  if (!hasStore(settings)) return;
  await withStores(settings, { needed: [ports.records, ports.blobs] }, async (app) => {
    const clock = app.port(ports.clock);
    const files = createStoredFiles({
      ...{ records: app.port(ports.records), blobs: app.port(ports.blobs), clock },
      log: app.port(ports.telemetry).log,
    });
    const before = ms === undefined ? undefined : new Date(Math.max(clock.now() - ms, 0)).toISOString();
    await use(matching(files, { attachmentId, userId, before }), files, before, app.port(ports.audit));
  });
}

async function* matching(
  files: StoredFiles,
  { attachmentId, userId, before }: Omit<AttachmentFilter, "olderThan"> & { readonly before: string | undefined },
): AsyncGenerator<Attachment, void> {
  const fits = (found: Attachment) =>
    (userId === undefined || found.userId === userId) && (before === undefined || isUnusedSince(found, before));
  if (attachmentId !== undefined) {
    const found = await files.attachment(attachmentId);
    if (found && fits(found)) yield found;
    return;
  }
  for await (const page of files.attachments(userId)) yield* page.filter(fits);
}

/** Collections whose records each have one blob: `COLLECTION/ID`. */
export const BLOB_COLLECTIONS: readonly string[] = [...FILE_COLLECTIONS, ...RUN_FILE_COLLECTIONS];
