// What modules expect of a browser when they are read, without one.
class Channel {
  onmessage: unknown = null
  postMessage() {}
  close() {}
}
const store = new Map<string, string>()
const storage = {
  getItem: (key: string) => store.get(key) ?? null,
  setItem: (key: string, value: string) => void store.set(key, value),
  removeItem: (key: string) => void store.delete(key),
}
const events = new EventTarget()
Object.assign(globalThis, {
  sessionStorage: storage,
  localStorage: storage,
  BroadcastChannel: Channel,
  addEventListener: events.addEventListener.bind(events),
  removeEventListener: events.removeEventListener.bind(events),
  dispatchEvent: events.dispatchEvent.bind(events),
})
