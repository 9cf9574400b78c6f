/** The buffers that a message between threads moves instead of copying. */
export function handedOver({ buffer, byteLength }: Uint8Array): ArrayBuffer[] {
  // A slice of Node's shared pool cannot be moved without the whole pool. Large bodies are never slices of the pool.
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : [];
}
