/** What a message between threads takes along instead of copying it. */
export function handedOver({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  // A slice of Node's shared pool cannot be handed over without the rest of the pool; big bodies never are one.
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
