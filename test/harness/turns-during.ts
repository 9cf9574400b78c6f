/** Do something, and tell how often the event loop came round meanwhile. */
export async function turnsDuring<T>(work: () => Promise<T>): Promise<{ readonly turns: number; readonly outcome: T }> {
  let turns = 0;
  const timer = setInterval(() => turns++, 5);
  try {
    const outcome = await work();
    return { turns, outcome };
  } finally {
    clearInterval(timer);
  }
}
