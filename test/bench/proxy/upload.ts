/** Uploads one large body after another over a raw socket, as fast as the receiver reads. It runs in its own process. */
import { connect } from "node:net";

export interface UploadJob {
  readonly port: number;
  /** The request's head, which declares the body's length. */
  readonly head: string;
  readonly before: string;
  /** Bytes of a long string between `before` and `after`. */
  readonly filling: number;
  readonly after: string;
  readonly times: number;
}

export interface UploadResult {
  /** Seconds of each upload, from its first byte to the end of its answer. */
  readonly seconds: readonly number[];
  /** The status of each answer. */
  readonly statuses: readonly number[];
}

process.on("message", (job: UploadJob) => void run(job).then((result) => process.send?.(result)));

const PIECE = Buffer.alloc(256 * 1024, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/");

async function run(job: UploadJob): Promise<UploadResult> {
  const seconds: number[] = [];
  const statuses: number[] = [];
  for (let time = 0; time < job.times; time += 1) {
    const beganAt = performance.now();
    statuses.push(await upload(job));
    seconds.push((performance.now() - beganAt) / 1000);
  }
  return { seconds, statuses };
}

/** The status of the answer, or 0 without an answer. The connection is closed after it. */
function upload({ port, head, before, filling, after }: UploadJob): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    let status = 0;
    let left = filling;
    const fill = () => {
      while (left > 0) {
        const piece = left < PIECE.length ? PIECE.subarray(0, left) : PIECE;
        left -= piece.length;
        if (!socket.write(piece) && left > 0) return;
      }
      socket.off("drain", fill);
      socket.write(after);
    };
    socket.on("drain", fill);
    socket.on("data", (bytes) => {
      status ||= Number(bytes.toString("latin1", 9, 12));
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(status));
    socket.write(head + before);
    fill();
  });
}
