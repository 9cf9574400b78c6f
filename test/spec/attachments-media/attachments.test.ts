import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { ports } from "@portico/core";
import { createManualClock } from "@portico/adapters/clock/manual";
import { createAttachments } from "../../../plugins/src/attachments-media/attachments.ts";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Holder, TOKENS } from "../../harness/agent-app.ts";
import { type FilesService, startFilesService, type UploadedFile } from "../../harness/files-app.ts";
import { cutCall } from "../../harness/raw-call.ts";

const MIB = 1024 * 1024;
const PATH = "/api/attachments";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let service: FilesService;
beforeEach(async () => {
  service = await startFilesService();
});
afterEach(() => service.close());

const upload = (file: UploadedFile, holder: Holder | null = "owner") => service.upload(holder ?? undefined, PATH, file);
const told = ({ status, body }: { readonly status: number; readonly body: any }) => [status, body.error];
/** Every file below the service's folder: finished ones and others. */
const kept = (filesDir = service.filesDir) =>
  readdirSync(filesDir, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !["lock", ".format"].includes(entry.name),
  );
const download = (attachmentId: string, holder: Holder | null = "owner", headers: Record<string, string> = {}) =>
  fetch(`${service.url}${PATH}/${attachmentId}`, {
    headers: { ...(holder && { "x-agent-service-token": TOKENS[holder] }), ...headers },
  });

describe("POST /api/attachments (4.5)", () => {
  it("201 with the receipt, no wrapper, and the file is there", async () => {
    const bytes = randomBytes(100_000);
    const { status, body } = await upload({ bytes, name: "report.pdf", type: "application/pdf" });
    expect([status, body]).toEqual([
      201,
      {
        attachmentId: expect.stringMatching(UUID),
        name: "report.pdf",
        mimeType: "application/pdf",
        size: 100_000,
        sha256: createHash("sha256").update(bytes).digest("hex"),
        fileReference: expect.stringMatching(/^\//),
      },
    ]);
    expect(Buffer.from(await (await download(body.attachmentId)).arrayBuffer())).toEqual(bytes);
  });

  it("the same file again is another attachment", async () => {
    const [one, two] = [await upload({ bytes: "x" }), await upload({ bytes: "x" })];
    expect(one.body.attachmentId).not.toBe(two.body.attachmentId);
  });

  it("exactly 20 MiB are taken; one byte more is 413 attachment_too_large, and nothing is kept", async () => {
    expect((await upload({ bytes: Buffer.alloc(20 * MIB) })).body.size).toBe(20 * MIB);
    expect(kept()).toHaveLength(1);
    expect(told(await upload({ bytes: Buffer.alloc(20 * MIB + 1) }))).toEqual([413, "attachment_too_large"]);
    expect(told(await upload({ bytes: Buffer.alloc(21 * MIB) }))).toEqual([413, "attachment_too_large"]);
    expect(kept()).toHaveLength(1);
  });

  it("an empty file is 400 attachment_empty, and nothing is kept", async () => {
    expect(told(await upload({ bytes: "" }))).toEqual([400, "attachment_empty"]);
    expect(kept()).toEqual([]);
  });

  it.each<[string, (form: FormData) => void]>([
    ["no part", () => {}],
    ["a field and no file", (form) => form.append("file", "text")],
    ["another field's name", (form) => form.append("files", new Blob(["x"]), "a.txt")],
    [
      "a second file",
      (form) => {
        form.append("file", new Blob(["x"]), "a.txt");
        form.append("file", new Blob(["y"]), "b.txt");
      },
    ],
    [
      "a field behind the file",
      (form) => {
        form.append("file", new Blob(["x"]), "a.txt");
        form.append("note", "text");
      },
    ],
    [
      "a field before the file",
      (form) => {
        form.append("note", "text");
        form.append("file", new Blob(["x"]), "a.txt");
      },
    ],
  ])("400 attachment_file_required with %s, and nothing is kept", async (_what, fill) => {
    const form = new FormData();
    fill(form);
    const answer = await fetch(service.url + PATH, {
      method: "POST",
      headers: { "x-agent-service-token": TOKENS.owner },
      body: form,
    });
    expect([answer.status, ((await answer.json()) as any).error]).toEqual([400, "attachment_file_required"]);
    expect(kept()).toEqual([]);
  });

  it.each([
    ["application/json", "{}"],
    ["multipart/form-data", "--x--"],
    ["multipart/form-data; boundary=x", "nothing of the kind"],
    ["multipart/form-data; boundary=x", '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nno end'],
  ])("400 attachment_file_required with %s and %j", async (type, body) => {
    expect(told(await service.call("owner", "POST", PATH, body, { "content-type": type }))).toEqual([
      400,
      "attachment_file_required",
    ]);
    expect(kept()).toEqual([]);
  });

  it.each([
    ["../../etc/passwd", "....etcpasswd"],
    ["C:\\temp\\a.txt", "C:tempa.txt"],
    ["tab\there.txt", "tabhere.txt"],
    ["Größe ✓.txt", "Größe ✓.txt"],
  ])("the name %j loses path separators and control characters", async (given, name) => {
    const { body } = await upload({ bytes: "x", name: given });
    expect(body.name).toBe(name);
  });

  it("the name has at most 240 characters, the type at most 128", async () => {
    const { body } = await upload({ bytes: "x", name: `${"n".repeat(300)}.txt`, type: `text/${"x".repeat(300)}` });
    expect(body.name.length).toBeLessThanOrEqual(240);
    expect(body.mimeType.length).toBeLessThanOrEqual(128);
  });

  it("an upload whose caller disconnects leaves no file", async () => {
    const head = [
      "POST /api/attachments HTTP/1.1",
      "host: a",
      `x-agent-service-token: ${TOKENS.owner}`,
      "content-type: multipart/form-data; boundary=x",
      "content-length: 1000000",
      "",
      '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhalf a file',
    ].join("\r\n");
    await cutCall(service.url, head);
    await expect
      .poll(() => service.telemetry.requests.some(({ route }) => route === "attachments-media.uploadAttachment"))
      .toBe(true);
    await expect.poll(() => kept()).toEqual([]);
    expect((await upload({ bytes: "x" })).status).toBe(201);
  });

  it("401 with a wrong token, and 401 attachment_identity_required with one that resolves to no user", async () => {
    expect(told(await upload({ bytes: "x" }, null))).toEqual([401, "unauthorized"]);
    expect(told(await upload({ bytes: "x" }, "service"))).toEqual([401, "attachment_identity_required"]);
    expect(kept()).toEqual([]);
  });

  it("503 attachment_storage_unavailable where files cannot be stored", async () => {
    const { chmodSync } = await import("node:fs");
    rmSync(join(service.filesDir, "attachments"), { recursive: true, force: true });
    // A file in the folder's place: also root cannot write below it.
    writeFileSync(join(service.filesDir, "attachments"), "in the way");
    chmodSync(join(service.filesDir, "attachments"), 0o600);
    expect(told(await upload({ bytes: "x" }))).toEqual([503, "attachment_storage_unavailable"]);
  });

  it("503, and not 404, for a stored attachment if the folder of the files is a file", async () => {
    await using other = await startFilesService();
    const { body } = await other.upload("owner", PATH, { bytes: "x" });
    const headers = { "x-agent-service-token": TOKENS.owner };
    const read = async () => (await other.raw({ path: `${PATH}/${body.attachmentId}`, headers })).status;
    expect(await read()).toBe(200);
    renameSync(other.filesDir, `${other.filesDir}.away`);
    writeFileSync(other.filesDir, "in the way");
    expect(await read()).toBe(503);
    rmSync(other.filesDir);
    renameSync(`${other.filesDir}.away`, other.filesDir);
    expect(await read()).toBe(200);
  });
});

it("bytes of an upload that was never confirmed are removed after a day; accepted files stay (open points 6)", async () => {
  const HOUR = 3600_000;
  const clock = createManualClock();
  await using timed = await startFilesService({ clock });
  expect((await timed.upload("owner", PATH, { bytes: "accepted" })).status).toBe(201);
  vi.spyOn(timed.app.port(ports.blobs), "remove").mockRejectedValueOnce(new ports.BlobsUnavailable("The disk is away"));
  expect(told(await timed.upload("owner", PATH, { bytes: "" }))).toEqual([400, "attachment_empty"]);
  expect(kept(timed.filesDir)).toHaveLength(2);
  await clock.jump(23 * HOUR);
  expect(kept(timed.filesDir)).toHaveLength(2);
  await clock.jump(2 * HOUR);
  await expect.poll(() => kept(timed.filesDir)).toHaveLength(1);
});

describe("a store that does not say whether it has written", () => {
  it.each([
    ["and had: what was stored stays, and counts", true, 1],
    ["and had not: nothing is kept, and nothing counts", false, 0],
  ])("%s", async (_what, isWritten, count) => {
    const records = service.app.port(ports.records);
    const batch = records.batch.bind(records);
    vi.spyOn(records, "batch").mockImplementationOnce(async (writes) => {
      if (isWritten) await batch(writes);
      throw new ports.RecordsUnavailable("The answer was lost");
    });
    expect(told(await upload({ bytes: "x" }))).toEqual([503, "attachment_storage_unavailable"]);
    expect(kept()).toHaveLength(count);
    const usages = await records.collection<{ count: number }>({ name: "attachment-usage" }).query({ limit: 10 });
    expect(usages.items.map(({ value }) => value.count)).toEqual(count === 0 ? [] : [count]);
  });
});

describe("quotas of a user (4.5 rule 2)", () => {
  const fill = async (count: number, size: number, userId = "owner") => {
    const attachments = createAttachments(service.app.port(ports.records));
    for (let at = 0; at < count; at++) {
      const attachmentId = `00000000-0000-4000-8000-${`${at}`.padStart(12, "0")}`;
      const about = { name: "x", mimeType: "text/plain", sha256: "0".repeat(64), createdAt: new Date(0).toISOString() };
      expect(await attachments.add({ attachmentId, userId, size, ...about }, [])).toBeUndefined();
    }
  };

  it("256 attachments: the next is 429 attachment_limit, and nothing of it is kept; another user has room", async () => {
    await fill(255, 1);
    expect((await upload({ bytes: "x" })).status).toBe(201);
    expect(told(await upload({ bytes: "x" }))).toEqual([429, "attachment_limit"]);
    expect(kept()).toHaveLength(1);
    expect((await upload({ bytes: "x" }, "member")).status).toBe(201);
  });

  it("512 MiB: the byte that fits is taken, one more is 429 attachment_storage_limit", async () => {
    await fill(1, 512 * MIB - 10);
    expect(told(await upload({ bytes: "12345678901" }))).toEqual([429, "attachment_storage_limit"]);
    expect((await upload({ bytes: "1234567890" })).status).toBe(201);
    expect(told(await upload({ bytes: "1" }))).toEqual([429, "attachment_storage_limit"]);
    expect(kept()).toHaveLength(1);
  });

  it("hold for uploads at the same time: of 20 for which there is room for 7, 7 are taken", async () => {
    await fill(1, 512 * MIB - 7 * MIB);
    const answers = await Promise.all(Array.from({ length: 20 }, () => upload({ bytes: Buffer.alloc(MIB) })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(7);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(13);
    expect(kept()).toHaveLength(7);
  });

  it("accept every upload that fits, also with many simultaneous uploads", async () => {
    const attachments = createAttachments(service.app.port(ports.records));
    const about = { name: "x", mimeType: "text/plain", sha256: "0".repeat(64), createdAt: new Date(0).toISOString() };
    const added = Array.from({ length: 200 }, (_, at) => {
      const attachmentId = `00000000-0000-4000-8000-${`${at}`.padStart(12, "0")}`;
      return attachments.add({ attachmentId, userId: "owner", size: 1, ...about }, []);
    });
    expect(await Promise.all(added)).toEqual(added.map(() => undefined));
  });

  it("stay exact after a restart", async () => {
    await fill(255, 1);
    await upload({ bytes: "x" });
    const { dataDir } = service;
    await service.app.close();
    await using again = await startFilesService({ dataDir });
    expect(told(await again.upload("owner", PATH, { bytes: "x" }))).toEqual([429, "attachment_limit"]);
  });
});

describe("GET /api/attachments/:attachmentId (4.5)", () => {
  it("200 with the bytes and the headers of the specification, and no ranges", async () => {
    const { body } = await upload({ bytes: "0123456789", name: 'a "quoted" ä.txt', type: "text/html" });
    const answer = await download(body.attachmentId, "owner", { range: "bytes=0-1" });
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/octet-stream",
      "content-length": "10",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "content-disposition": expect.stringMatching(/^attachment; filename=.*filename\*=UTF-8''/),
    });
    expect(await answer.text()).toBe("0123456789");
  });

  it("HEAD is the same without the bytes", async () => {
    const { body } = await upload({ bytes: "0123456789" });
    const answer = await fetch(`${service.url}${PATH}/${body.attachmentId}`, {
      method: "HEAD",
      headers: { "x-agent-service-token": TOKENS.owner },
    });
    expect([answer.status, answer.headers.get("content-length"), await answer.text()]).toEqual([200, "10", ""]);
  });

  it("404 attachment_not_found for another user's, a missing and an invalid one, all alike", async () => {
    const { body } = await upload({ bytes: "x" });
    const answers = await Promise.all([
      download(body.attachmentId, "member"),
      download("00000000-0000-4000-8000-000000000000"),
      download("..%2f..%2fetc%2fpasswd"),
      download(body.attachmentId.toUpperCase()),
      download("x"),
    ]);
    for (const answer of answers) expect([answer.status, await answer.json()]).toEqual([404, { error: "attachment_not_found" }]);
  });

  it("404 where the bytes are gone", async () => {
    const { body } = await upload({ bytes: "x" });
    await service.app.port(ports.blobs).remove(`attachments/${body.attachmentId}`);
    expect((await download(body.attachmentId)).status).toBe(404);
  });

  it.each([
    ["shorter", ""],
    ["longer", "x".repeat(5000)],
  ])("404 where the file is %s than it was stored: nobody is sent another length than is announced", async (_what, text) => {
    const { body } = await upload({ bytes: "as it was" });
    writeFileSync(join(service.filesDir, "attachments", body.attachmentId), text);
    const answer = await download(body.attachmentId);
    expect([answer.status, await answer.json()]).toEqual([404, { error: "attachment_not_found" }]);
  });

  it("401 without a token, and with one that resolves to no user", async () => {
    const { body } = await upload({ bytes: "x" });
    expect((await download(body.attachmentId, null)).status).toBe(401);
    const answer = await download(body.attachmentId, "service");
    expect([answer.status, await answer.json()]).toEqual([401, { error: "attachment_identity_required" }]);
  });

  it("a reader that disconnects leaves no file open", async () => {
    const { body } = await upload({ bytes: randomBytes(20 * MIB) });
    const isItsFile = (fd: string): boolean => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).endsWith(body.attachmentId);
      } catch {
        return false;
      }
    };
    const open = () => readdirSync("/proc/self/fd").filter(isItsFile).length;
    const calls = Array.from({ length: 8 }, () =>
      request(`${service.url}${PATH}/${body.attachmentId}`, { headers: { "x-agent-service-token": TOKENS.owner } }),
    );
    for (const call of calls) {
      call.on("error", () => {});
      await new Promise((resolve) => call.on("response", (response) => response.once("data", resolve)).end());
    }
    expect(open()).toBeGreaterThan(0);
    for (const call of calls) call.destroy();
    // One connection that all of them shared may stay open for the next caller.
    await expect.poll(open).toBeLessThanOrEqual(1);
  });
});
