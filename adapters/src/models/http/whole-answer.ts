import { Readable } from "node:stream";
import type { ports } from "@portico/core";

/** An answer that has arrived completely. Its stream is created when it is first used, because most readers use only the bytes. */
export class WholeAnswer implements ports.ModelAnswer {
  readonly status: number;
  readonly headers: ports.ModelAnswer["headers"];
  readonly whole: Buffer;
  #body: Readable | undefined;

  constructor(status: number, headers: ports.ModelAnswer["headers"], whole: Buffer) {
    this.status = status;
    this.headers = headers;
    this.whole = whole;
  }

  get body(): Readable {
    return (this.#body ??= streamOf(this.whole));
  }
}

function streamOf(bytes: Buffer): Readable {
  const stream = new Readable({ read() {} });
  stream.push(bytes);
  stream.push(null);
  // An error without any listener ends the process. A reader may destroy the stream with an error.
  return stream.on("error", () => {});
}
