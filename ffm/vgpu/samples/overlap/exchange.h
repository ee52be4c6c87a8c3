/* Numbers that one thread hands to another. */
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

class Exchange
{
  public:
    void put(int number)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        numbers_.push_back(number);
        changed_.notify_one();
    }
    /* Waits until there is one. */
    int take()
    {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !numbers_.empty(); });
        const int number = numbers_.front();
        numbers_.pop_front();
        return number;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<int> numbers_;
};
