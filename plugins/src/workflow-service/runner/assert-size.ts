import { hasMoreLevels, ports } from "@portico/core";

/** Throws NodeFailed where a value is too large, or too deep, for a node's output. */
export function assertSize(output: unknown): void {
  const { NODE_OUTPUT_BYTES: bytes, NODE_OUTPUT_LEVELS: levels } = ports;
  const fail = (code: string, message: string) => new ports.NodeFailed(code, message, { retryable: false });
  const tooLarge = () => fail("output_too_large", `The output is larger than ${bytes} bytes`);
  const tooDeep = () => fail("output_too_deep", `The output has more than ${levels} levels of lists and objects`);
  let text: string;
  try {
    text = JSON.stringify(output) ?? "";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // Of the two limits that JavaScript has itself, the other is the stack's.
    throw /string length/.test(error.message) ? tooLarge() : tooDeep();
  }
  if (Buffer.byteLength(text) > bytes) throw tooLarge();
  // Each level takes two characters at least. Behind the size: values that stand in several places are looked at in each.
  if (text.length > 2 * levels && hasMoreLevels(output, levels)) throw tooDeep();
}
