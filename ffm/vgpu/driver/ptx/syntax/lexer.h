/* PTX as words and signs. */
#pragma once

#include <string>
#include <vector>

namespace vgpu::ptx
{

struct Token {
    std::string text; /* empty at the end; strings keep their opening quote */
    int line;
};

class Lexer
{
  public:
    /* Throws Error for brackets in brackets deeper than anybody writes them. */
    explicit Lexer(const std::string &text);

    const std::string &peek(std::size_t ahead = 0) const
    {
        std::size_t place = place_ + ahead;
        return tokens_[place < tokens_.size() ? place : tokens_.size() - 1].text;
    }
    std::string next();
    bool accept(const std::string &text);
    void expect(const std::string &text); /* throws Error */
    int line() const
    {
        return tokens_[place_].line;
    }
    bool at_end() const
    {
        return peek().empty();
    }

  private:
    void add(const std::string &text, int line);

    std::vector<Token> tokens_;
    int depth_ = 0; /* of brackets that are open */
    std::size_t place_ = 0;
};

} // namespace vgpu::ptx
