import { CallFailed } from "@portico/core/client";
import type { AttachmentReceipt, MediaMetadata } from "@portico/client";
import { attachmentsMediaContract } from "@portico/plugins/attachments-media/contract";
import { describeFailure } from "../../../api/describe-failure.ts";
import type { Instance } from "../../../api/instance.ts";
import type { SentFile } from "../conversation/turn.ts";

/** Maximum number of media, and of attachments, in one query. */
export const MOST_FILES = 32;

/** A file that is uploading or uploaded. */
export class OutgoingFile {
  readonly file: File;
  /** A URL for showing a picture from memory. `close` releases it. */
  readonly preview: string | undefined;
  sent = $state(0);
  problem = $state<string>();
  /** The reference for a query. Undefined until the upload has finished. */
  done = $state.raw<SentFile>();
  readonly #instance: Instance;
  #uploading = new AbortController();

  constructor(instance: Instance, file: File) {
    this.#instance = instance;
    this.file = file;
    this.preview = /^image\/(?:png|jpeg|gif|webp)$/.test(file.type) ? URL.createObjectURL(file) : undefined;
  }

  get isUploading(): boolean {
    return this.done === undefined && this.problem === undefined;
  }

  /** Never rejects: failures are in `problem`. */
  async upload(): Promise<void> {
    this.problem = undefined;
    this.sent = 0;
    try {
      this.done = await this.#store();
    } catch (error) {
      this.problem = describeFailure(error);
    }
  }

  /** Aborts the upload and discards the file. */
  close(): void {
    this.#uploading.abort();
    if (this.preview !== undefined) URL.revokeObjectURL(this.preview);
  }

  /** Uploads files that models can see as media, and all other files as attachments. Also files that the service does not accept as media. */
  async #store(): Promise<SentFile> {
    if (!/^(?:image|audio|video)\//.test(this.file.type)) return this.#storeAttachment();
    try {
      const { mediaId: reference, name, mimeType, size } = (await this.#send("uploadMedia")) as MediaMetadata;
      return { kind: "media", reference, name, mimeType, size };
    } catch (error) {
      if (CallFailed.is(error) && error.status === 415) return this.#storeAttachment();
      throw error;
    }
  }

  async #storeAttachment(): Promise<SentFile> {
    const { fileReference: reference, name, mimeType, size } = (await this.#send("uploadAttachment")) as AttachmentReceipt;
    return { kind: "attachment", reference, name, mimeType, size };
  }

  #send(call: "uploadMedia" | "uploadAttachment"): Promise<unknown> {
    return this.#instance.upload(attachmentsMediaContract[call].path, {
      file: this.file,
      onProgress: (sent) => (this.sent = sent),
      signal: this.#uploading.signal,
    });
  }
}

/** The files that go with the next message. */
export class OutgoingFiles {
  all = $state<OutgoingFile[]>([]);
  readonly #instance: Instance;

  constructor(instance: Instance) {
    this.#instance = instance;
  }

  /** Whether all files are uploaded. */
  get isReady(): boolean {
    return this.all.every(({ done }) => done !== undefined);
  }

  /** Returns the number of files above the limit, which were not added. */
  add(files: Iterable<File>): number {
    const chosen = [...files];
    const taken = chosen.slice(0, MOST_FILES - this.all.length).map((file) => new OutgoingFile(this.#instance, file));
    this.all.push(...taken);
    for (const each of taken) void each.upload();
    return chosen.length - taken.length;
  }

  remove(file: OutgoingFile): void {
    file.close();
    this.all = this.all.filter((each) => each !== file);
  }

  /** Takes all uploaded files for a message, and empties the list. */
  take(): readonly SentFile[] {
    const taken = this.all.flatMap(({ done }) => done ?? []);
    this.close();
    return taken;
  }

  close(): void {
    for (const file of this.all) file.close();
    this.all = [];
  }
}
