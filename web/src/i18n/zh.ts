const zh: Record<string, string> = {}
export default zh
