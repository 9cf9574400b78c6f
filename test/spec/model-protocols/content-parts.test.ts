import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/src/model-protocols/json.ts";
import { type ChatPart, chatContent, type MessagesTurn, messagesContent, refusal, toChat, toMessages } from "./converted.ts";

const PNG = "iVBORw0KGgo=";
const PDF = "JVBERi0xLjQ=";
const base64 = (media_type: string, data: string) => ({ type: "base64" as const, media_type, data });
const text = (content: string) => ({ type: "text" as const, text: content });

describe("text", () => {
  it("of one message is one string for Chat Completions, its blocks apart", () => {
    expect(chatContent(text("one"))).toBe("one");
    expect(chatContent(text("one"), text(""), text("two"))).toBe("one\n\ntwo");
  });

  it("stays unchanged, including white space", () => {
    expect(chatContent(text("  a\n"))).toBe("  a\n");
    expect(messagesContent(text("  a\n"))).toBe("  a\n");
    expect(messagesContent(text("a "), text(" b"))).toEqual([text("a "), text(" b")]);
  });

  it("of whitespace alone is left out towards Messages, which refuses it", () => {
    expect(messagesContent(text("a"), text(" \n"), text(""), text("b"))).toEqual([text("a"), text("b")]);
  });
});

describe("images", () => {
  const label = text("look");

  it.each<[string, JsonObject, string]>([
    ["base64", base64("image/png", PNG), `data:image/png;base64,${PNG}`],
    ["a URL", { type: "url", url: "https://pictures.example/a.png" }, "https://pictures.example/a.png"],
  ])("both ways: %s", (_, source, url) => {
    const image = { type: "image", source };
    const part = { type: "image_url", image_url: { url } } satisfies ChatPart;
    expect(chatContent(label, image)).toEqual([label, part]);
    expect(messagesContent(label, part)).toEqual([label, image]);
  });

  it.each([
    ["data:image/PNG;base64,AA", base64("image/png", "AA")],
    ["data:image/jpg;base64,AA", base64("image/jpeg", "AA")],
    ["DATA:image/gif;name=a.gif;base64,AA", base64("image/gif", "AA")],
    ["HTTP://pictures.example/a", { type: "url", url: "HTTP://pictures.example/a" }],
  ])("are read from %s", (url, source) => {
    expect(messagesContent({ type: "image_url", image_url: { url } })).toEqual([{ type: "image", source }]);
  });

  it("lose the detail, which is named unless it is the default", () => {
    const part = (detail: string | null): JsonObject => ({ type: "image_url", image_url: { url: "https://a.example/", detail } });
    const dropped = (detail: string | null) => toMessages({ messages: [{ role: "user", content: [part(detail)] }] }).dropped;
    expect(dropped("high")).toEqual(["messages.content.image_url.detail"]);
    expect(dropped("auto")).toEqual([]);
    expect(dropped(null)).toEqual([]);
  });

  it.each<[JsonObject, string]>([
    [{ type: "image" }, "source"],
    [{ type: "image", source: { type: "file", file_id: "f" } }, "source"],
    [{ type: "image", source: base64("image/tiff", "AA") }, "source.media_type"],
    [{ type: "image", source: { type: "base64", media_type: "image/png" } }, "source.data"],
    [{ type: "image", source: { type: "url" } }, "source.url"],
  ])("that Chat Completions can't take are refused: %j", (block, field) => {
    expect(refusal(() => chatContent(block)).field).toBe(`messages.0.content.0.${field}`);
  });

  it.each([
    "data:image/svg+xml;base64,AA",
    "data:image/png,AA",
    "data:image/png",
    "file:///etc/passwd",
    "ftp://a.example/a.png",
    "",
    7,
  ])("that Messages can't take are refused, and the error doesn't repeat them: %j", (url) => {
    const refused = refusal(() => messagesContent({ type: "image_url", image_url: { url } }));
    expect(refused.field).toBe("messages.0.content.0.image_url.url");
    expect(refused.message).not.toContain("passwd");
  });

  it("stay a slice of the caller's body", () => {
    const data = "A".repeat(1_000_000);
    const [image] = messagesContent({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }) as [
      { source: { data: string } },
    ];
    expect(image.source.data === data).toBe(true);
  });
});

describe("documents, towards Chat Completions", () => {
  it.each([
    ["a title", { title: "report.pdf" }, "report.pdf"],
    ["none", {}, "document.pdf"],
  ])("a PDF becomes a file with its title as the name: %s", (_, title, filename) => {
    const file = { type: "file", file: { filename, file_data: `data:application/pdf;base64,${PDF}` } } satisfies ChatPart;
    expect(chatContent({ type: "document", source: base64("application/pdf", PDF), ...title })).toEqual([file]);
  });

  it("its context goes before it as text", () => {
    const content = chatContent({ type: "document", source: base64("application/pdf", PDF), context: "for audit" });
    expect(content).toMatchObject([text("<document_context>for audit</document_context>"), { type: "file" }]);
  });

  const head = "<document>\n<title>T</title>\n<context>C</context>";
  it.each<[string, JsonObject, unknown]>([
    ["text", { type: "text", media_type: "text/plain", data: "body" }, `${head}\nbody\n</document>`],
    ["a string of content", { type: "content", content: "body" }, `${head}\nbody\n</document>`],
    [
      "content with an image",
      { type: "content", content: [text("body"), { type: "image", source: base64("image/png", PNG) }] },
      [text(head), text("body"), { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } }, text("</document>")],
    ],
  ])("%s becomes text between tags", (_, source, expected) => {
    expect(chatContent({ type: "document", title: "T", context: "C", source })).toEqual(expected);
  });

  it("flags for citations are dropped and named", () => {
    const document = { type: "document", citations: { enabled: true }, source: { type: "content", content: "a" } };
    expect(toChat({ messages: [{ role: "user", content: [document] }] }).dropped).toEqual(["messages.content.citations"]);
  });

  it.each<[JsonObject["x"], string]>([
    [{ type: "url", url: "https://a.example/a.pdf" }, "source"],
    [{ type: "file", file_id: "f" }, "source"],
    [base64("application/msword", PDF), "source.media_type"],
    [{ type: "text" }, "source.data"],
    [{ type: "content", content: [{ type: "tool_use" }] }, "source.content.0"],
    [null, "source"],
  ])("a source out of reach is refused: %j", (source, field) => {
    expect(refusal(() => chatContent({ type: "document", source })).field).toBe(`messages.0.content.0.${field}`);
  });

  it("a search result becomes text with its source", () => {
    const result = { type: "search_result", title: "T", source: "https://a.example/", content: [text("one"), text("two")] };
    expect(chatContent(result)).toBe(
      "<search_result>\n<title>T</title>\n<source>https://a.example/</source>\none\ntwo\n</search_result>",
    );
  });

  it.each(["container_upload", "server_tool_use", "web_search_tool_result", "mcp_tool_use", "thinking", "tool_use"])(
    "a %s block of a user is refused by name",
    (type) => {
      const refused = refusal(() => chatContent({ type, file_id: "f" }));
      expect(refused.field).toBe("messages.0.content.0");
      expect(refused.message).toContain(`"${type}"`);
    },
  );
});

describe("files, towards Messages", () => {
  it.each<[JsonObject, MessagesTurn["content"]]>([
    [
      { filename: "report.pdf", file_data: `data:application/pdf;base64,${PDF}` },
      [{ type: "document", title: "report.pdf", source: { type: "base64", media_type: "application/pdf", data: PDF } }],
    ],
    [
      { file_data: `data:application/pdf;base64,${PDF}` },
      [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: PDF } }],
    ],
    [
      { filename: "bare.PDF", file_data: PDF },
      [{ type: "document", title: "bare.PDF", source: { type: "base64", media_type: "application/pdf", data: PDF } }],
    ],
    [
      { filename: "a.txt", file_data: `data:text/plain;charset=utf-8;base64,${Buffer.from("grün").toString("base64")}` },
      [{ type: "document", title: "a.txt", source: { type: "text", media_type: "text/plain", data: "grün" } }],
    ],
  ])("a PDF or plain text becomes a document: %j", (file, expected) => {
    expect(messagesContent({ type: "file", file })).toEqual(expected);
  });

  it.each<[JsonObject, string]>([
    [{ type: "file" }, "file"],
    [{ type: "file", file: { file_id: "file-1" } }, "file.file_id"],
    [{ type: "file", file: {} }, "file.file_data"],
    [{ type: "file", file: { filename: "a.docx", file_data: "AAAA" } }, "file.file_data"],
    [{ type: "file", file: { file_data: "data:application/zip;base64,AAAA" } }, "file.file_data"],
    [{ type: "file", file: { file_data: "data:text/plain;base64,/w==" } }, "file.file_data"],
    [{ type: "file", file: { filename: 1, file_data: "data:application/pdf;base64,AA" } }, "file.filename"],
  ])("anything else is refused: %j", (part, field) => {
    expect(refusal(() => messagesContent(part)).field).toBe(`messages.0.content.0.${field}`);
  });

  it.each(["input_audio", "video_url", "refusal"])("a %s part of a user is refused by name", (type) => {
    const refused = refusal(() => messagesContent({ type, input_audio: { data: "secret", format: "wav" } }));
    expect(refused.field).toBe("messages.0.content.0");
    expect(refused.message).toContain(`"${type}"`);
    expect(refused.message).not.toContain("secret");
  });
});
