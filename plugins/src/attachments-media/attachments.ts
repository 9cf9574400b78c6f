import { hash } from "node:crypto";
import { type ports, readPages, writeAgain } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import { createFileHolds } from "./file-holds.ts";
import { attachmentOf } from "./file-reference.ts";
import { ATTACHMENT_BYTES_PER_USER, ATTACHMENTS_PER_USER } from "./limits.ts";

/** The record of an attachment. Its bytes are stored separately. */
export interface Attachment {
  readonly attachmentId: string;
  readonly userId: string;
  readonly name: string;
  readonly mimeType: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly size: number;
  readonly sha256: string;
  /** When the last query that refers to it was accepted (ISO 8601). Absent: it was not used yet. */
  readonly usedAt?: string | undefined;
}

/** What one user has stored. It changes in the same commit as the attachments, so that it is exact even after a crash. */
interface Usage {
  readonly count: number;
  readonly bytes: number;
}

/** The limit of a user that is reached. */
type LimitReached = "attachment_limit" | "attachment_storage_limit";

const ATTACHMENT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** The key of an attachment's bytes in the port `blobs`. */
export const attachmentKey = (attachmentId: string): string => `attachments/${attachmentId}`;

export type Attachments = ReturnType<typeof createAttachments>;

/** The attachments of users. Each counts toward the user's quota. */
export function createAttachments(records: ports.Records) {
  const attachments = records.collection<Attachment>({
    name: "attachments",
    indexes: { byAge: ["createdAt"], byUser: ["userId", "createdAt"] },
  });
  const holds = createFileHolds(records);
  const usages = records.collection<Usage>({ name: "attachment-usage" });
  const usageOf = (userId: string) => usages.get(usageKey(userId));
  const adding = new Map<string, Promise<unknown>>();

  /** Runs the uploads of one user one after another. Otherwise they would conflict and some would give up. Only other processes can conflict. */
  const inTurn = async <T>(userId: string, work: () => Promise<T>): Promise<T> => {
    const before = adding.get(userId) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(work);
    adding.set(userId, turn);
    try {
      return await turn;
    } finally {
      if (adding.get(userId) === turn) adding.delete(userId);
    }
  };

  const find = async (userId: string, attachmentId: string): Promise<Attachment | undefined> => {
    const found = ATTACHMENT_ID.test(attachmentId) ? (await attachments.get(attachmentId))?.value : undefined;
    return found?.userId === userId ? found : undefined;
  };

  return {
    /** Undefined for an unknown reference and for another user's file: callers cannot distinguish the two. */
    find,
    /** Like `find`, with the reference that queries contain. */
    async findReference(userId: string, fileReference: string): Promise<Attachment | undefined> {
      const attachmentId = attachmentOf(fileReference);
      return attachmentId === undefined ? undefined : find(userId, attachmentId);
    },
    /** The limit that prevents this user from storing even one more byte; undefined if there is room. */
    async reached(userId: string): Promise<LimitReached | undefined> {
      return reachedWith((await usageOf(userId))?.value ?? NOTHING, 1);
    },
    /**
     * Add an attachment, with `writes` in the same commit. If it would exceed a limit, returns that limit and writes nothing. Of two
     * simultaneous attachments that together exceed a limit, only one is added.
     */
    add: (attachment: Attachment, writes: readonly ports.Write[]): Promise<LimitReached | undefined> =>
      inTurn(attachment.userId, () =>
        writeAgain(async () => {
          const { attachmentId, userId, size } = attachment;
          const usage = await usageOf(userId);
          const { count, bytes } = usage?.value ?? NOTHING;
          const reached = reachedWith({ count, bytes }, size);
          if (reached) return reached;
          await records.batch([
            attachments.write.put(attachmentId, attachment, "absent"),
            usages.write.put(usageKey(userId), { count: count + 1, bytes: bytes + size }, usage?.version ?? "absent"),
            ...writes,
          ]);
          return undefined;
        }),
      ),
    /**
     * The writes that keep an attachment as long as `work` is open, for the commit that accepts the work. The commit conflicts if the
     * attachment was removed meanwhile. Undefined if this user has no such attachment.
     */
    async hold(userId: string, attachmentId: string, work: string, usedAt: string): Promise<readonly ports.Write[] | undefined> {
      const stored = ATTACHMENT_ID.test(attachmentId) ? await attachments.get(attachmentId) : undefined;
      if (stored?.value.userId !== userId) return undefined;
      return [
        attachments.write.put(attachmentId, { ...stored.value, usedAt }, stored.version),
        holds.hold(attachmentKey(attachmentId), work),
      ];
    },
    /** An attachment of any user. */
    async get(attachmentId: string): Promise<Attachment | undefined> {
      return ATTACHMENT_ID.test(attachmentId) ? (await attachments.get(attachmentId))?.value : undefined;
    },
    /** Attachments that were uploaded before this time (ISO 8601), the oldest first, in pages. */
    async *uploadedBefore(at: string): AsyncGenerator<readonly Attachment[], void> {
      for await (const items of readPages(attachments, { order: OLDEST })) {
        const found = items.filter(({ value }) => value.createdAt < at);
        yield found.map(({ value }) => value);
        if (found.length < items.length) return;
      }
    },
    /** The attachments of a user, or of all users, the oldest first, in pages. */
    async *list(userId: string | undefined): AsyncGenerator<readonly Attachment[], void> {
      const query = { order: OLDEST, ...(userId !== undefined && { where: { userId } }) };
      for await (const items of readPages(attachments, query)) yield items.map(({ value }) => value);
    },
    /** Remove the record of what a user has stored, if it is nothing. */
    async forgetUsage(userId: string): Promise<void> {
      const usage = await usageOf(userId);
      // A conflict: the user has stored something meanwhile.
      if (usage?.value.count === 0) await usages.remove(usage.id, usage.version).catch(undefinedAtConflict);
    },
    /**
     * Remove the record of an attachment that `mayRemove` and no open work uses, with `writes` in the same commit. False if it is kept or
     * does not exist.
     */
    remove: (
      { attachmentId, userId }: Attachment,
      mayRemove: (attachment: Attachment) => boolean,
      writes: readonly ports.Write[],
    ): Promise<boolean> =>
      inTurn(userId, () =>
        writeAgain(async () => {
          const stored = await attachments.get(attachmentId);
          // Its version is read before its holds: a hold that is written later conflicts with the removal.
          if (!stored || !mayRemove(stored.value) || (await holds.isHeld(attachmentKey(attachmentId)))) return false;
          const usage = await usageOf(userId);
          const { count, bytes } = usage?.value ?? NOTHING;
          const left = { count: Math.max(count - 1, 0), bytes: Math.max(bytes - stored.value.size, 0) };
          await records.batch([
            attachments.write.remove(attachmentId, stored.version),
            ...(usage ? [usages.write.put(usage.id, left, usage.version)] : []),
            ...writes,
          ]);
          return true;
        }),
      ),
  };
}

const OLDEST = { by: "createdAt", direction: "ascending" } as const;

const NOTHING: Usage = { count: 0, bytes: 0 };

function reachedWith({ count, bytes }: Usage, more: number): LimitReached | undefined {
  if (count >= ATTACHMENTS_PER_USER) return "attachment_limit";
  return bytes + more > ATTACHMENT_BYTES_PER_USER ? "attachment_storage_limit" : undefined;
}

/** Encoded, because a user's id can be any text. */
function usageKey(userId: string): string {
  return `user_${hash("sha256", userId)}`;
}
