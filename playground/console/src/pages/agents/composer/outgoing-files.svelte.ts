import { CallFailed } from "@portico/core/client";
import type { AttachmentReceipt, MediaMetadata } from "@portico/client";
import { attachmentsMediaContract } from "@portico/plugins/attachments-media/contract";
import { describeFailure } from "../../../api/describe-failure.ts";
import type { Instance } from "../../../api/instance.ts";
import type { SentFile } from "../conversation/turn.ts";

/** So many of either kind go with one query. */
export const MOST_FILES = 32;

/** A file on its way to the service, or there. */
export class OutgoingFile {
  readonly file: File;
  /** Of a picture, from memory; ends with `close`. */
  readonly preview: string | undefined;
  sent = $state(0);
  problem = $state<string>();
  /** What goes with a query; undefined until it is there. */
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

  /** Never rejects: what went wrong stands in `problem`. */
  async upload(): Promise<void> {
    this.problem = undefined;
    this.sent = 0;
    try {
      this.done = await this.#store();
    } catch (error) {
      this.problem = describeFailure(error);
    }
  }

  /** Ends the upload; nothing of it is kept. */
  close(): void {
    this.#uploading.abort();
    if (this.preview !== undefined) URL.revokeObjectURL(this.preview);
  }

  /** What a model can see goes as media, and everything else as an attachment: also what the service does not take for media. */
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

  /** Whether every one is there. */
  get isReady(): boolean {
    return this.all.every(({ done }) => done !== undefined);
  }

  /** Answers how many there was no more room for. */
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

  /** What is there goes with a message, and none is left. */
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
