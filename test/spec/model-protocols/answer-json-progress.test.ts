import { describe, expect, it } from "vitest";
import { JsonProgress } from "../../../core/src/model-protocols/answer/chat-tool-calls.ts";

describe("when the arguments of a tool call are complete", () => {
  it.each([
    ["{}", true],
    ['{"a":[{}]}', true],
    ["", false],
    ["  ", false],
    ["{", false],
    ['{"a":{}', false],
    ['{"a":"}', false],
    ['{"a":"\\"}', false],
    ['{"a":"\\"}"}', true],
    ['{"a":"\\\\"}', true],
    ['{"a":"]}"', false],
    ["null", false],
  ])("%s: %s, whether in one piece or character by character", (json, expected) => {
    const whole = new JsonProgress();
    whole.push(json);
    const pieces = new JsonProgress();
    for (const piece of json) pieces.push(piece);
    expect([whole.complete, pieces.complete]).toEqual([expected, expected]);
  });
});
